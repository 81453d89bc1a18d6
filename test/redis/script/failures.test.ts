import * as SCRIPTS from '../../../lib/redis/script/scripts.js';
import { replyCode, toStoreError, withAdvice } from '../../../lib/redis/script/failures.js';

/** As ioredis rejects: the error carries the command with all its arguments. */
function replyError(message: string): Error {
  const error = Object.assign(new Error(message), { command: { name: 'evalsha', args: ['sha', 'owner/secret'] } });
  error.name = 'ReplyError';
  return error;
}

describe('what Redis answers', () => {
  it.each([
    'LOADING Redis is loading the dataset in memory',
    'BUSY Redis is busy running a script',
    "READONLY You can't write against a read only replica. script: 0123456789012345678901234567890123456789, on @user_script:3.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    'MISCONF Redis is configured to save RDB snapshots',
    "OOM command not allowed when used memory > 'maxmemory'.",
    'NOREPLICAS Not enough good replicas to write.',
    'CLUSTERDOWN Hash slot not served',
    'MOVED 3999 127.0.0.1:6381',
    'NOSCRIPT No matching script. Please use EVAL.',
    'ERR max number of clients reached',
  ])('may be tried again: %s', (message) => {
    expect(toStoreError(replyError(message)).failure).toBe('notExecuted');
  });

  it.each([
    "NOPERM this user has no permissions to run the 'evalsha' command",
    'NOAUTH Authentication required.',
    'WRONGPASS invalid username-password pair or user is disabled.',
    'WRONGTYPE Operation against a key holding the wrong kind of value',
    "CROSSSLOT Keys in request don't hash to the same slot",
    "ERR unknown command 'EVALSHA'",
  ])('is final: %s', (message) => {
    expect(toStoreError(replyError(message)).failure).toBe('refused');
  });

  it.each(['Command timed out', 'Connection is closed.', 'read ECONNRESET', 'Socket timeout'])(
    'is unknown: %s',
    (message) => {
      expect(toStoreError(new Error(message)).failure).toBe('unknown');
    },
  );

  it('was never sent if the connection could not be written to', () => {
    const error = new Error("Stream isn't writeable and enableOfflineQueue options is false");
    expect(toStoreError(error).failure).toBe('notExecuted');
  });

  it('has a code that is found even if a script wraps it, before Redis 7', () => {
    const message =
      'ERR Error running script (call to f_0123456789012345678901234567890123456789): @user_script:7: @user_script: 7: ' +
      '-READONLY You can not write against a read only replica.';
    expect(replyCode(message)).toBe('READONLY');
  });

  it.each([
    ["NOPERM this user has no permissions to run the 'select' command or its subcommand", '+select'],
    ["NOPERM User locks has no permissions to run the 'client|setname' command", '+client|setname'],
  ])('comes with the rule that is missing: %s', (message, rule) => {
    const error = toStoreError(replyError(message));
    expect(error.message).toBe(`${message}. Add the rule ${rule} to the ACL user`);
    expect(withAdvice(error, { NOPERM: 'Other advice' }).message).toBe(`${message}. Other advice`);
  });

  it('lists all permissions if Redis does not name the command', () => {
    const { message } = toStoreError(replyError('NOPERM No permissions to access a key'));
    expect(message).toContain('The ACL user needs EVALSHA, EVAL');
  });

  describe('if a command was renamed or is missing', () => {
    const PAGE = 'See docs/operations/acl.md#renamed-and-missing-commands';
    const line = SCRIPTS.ACQUIRE.lua.split('\n').findIndex((text) => text.includes("redis.call('INCRBY'")) + 1;

    it.each([
      ["ERR unknown command 'EVALSHA', with args beginning with: 'sha' ", 'EVALSHA'],
      ['ERR unknown command `evalsha`, with args beginning with: `sha`', 'EVALSHA'],
      [
        `ERR Unknown Redis command called from script script: ${SCRIPTS.ACQUIRE.sha}, on @user_script:${line}.`,
        'INCRBY',
      ],
      [
        `ERR Error running script (call to f_${SCRIPTS.ACQUIRE.sha}): @user_script:${line}: @user_script: ${line}: ` +
          'Unknown Redis command called from Lua script',
        'INCRBY',
      ],
      ['ERR Unknown Redis command called from script', 'a command of the script'],
    ])('names it, and the page: %s', (message, command) => {
      const error = toStoreError(replyError(message));
      expect(error.failure).toBe('refused');
      expect(error.message).toContain(`. This server does not know ${command}: it was renamed, or`);
      expect(error.message).toContain(PAGE);
    });
  });

  it('names the setting of a service that checks scripts for keys in Lua variables', () => {
    const message =
      'ERR bad lua script for redis cluster, all the keys that the script uses should be passed using the KEYS array';
    expect(toStoreError(replyError(message))).toMatchObject({
      failure: 'refused',
      message: expect.stringContaining('set its parameter script_check_enable to 0') as string,
    });
  });

  it('comes with advice', () => {
    const { message } = toStoreError(replyError('NOAUTH Authentication required.'));
    expect(message).toBe('NOAUTH Authentication required. Set the password in the connection option');
  });

  it.each([
    ['SELF_SIGNED_CERT_IN_CHAIN', 'tls: { ca }'],
    ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'tls: { ca }'],
    ['ERR_TLS_CERT_ALTNAME_INVALID', 'tls: { servername }'],
    ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'tls: { cert, key }'],
  ])('comes with advice if TLS fails: %s', (code, advice) => {
    const { failure, message } = toStoreError(Object.assign(new Error('no\n'), { code }));
    expect(failure).toBe('unknown');
    expect(message).toMatch(/^no\. [A-Z]/);
    expect(message).toContain(advice);
  });

  it('loses the arguments of the command on the way', () => {
    const error = toStoreError(replyError('NOPERM no'));
    expect(Object.keys(error).sort()).toEqual(['failure', 'name']);
    expect(error.cause).toBeUndefined();
    const unknown = toStoreError(
      replyError("ERR unknown command 'EVALSHA', with args beginning with: 'sha' 'owner/secret' "),
    );
    expect(unknown.message).not.toContain('secret');
  });
});
