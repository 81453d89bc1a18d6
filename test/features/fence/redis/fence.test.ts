import { inspect } from 'node:util';
import { jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import { InvalidLockOptionsError, LockError, LockUnavailableError } from '../../../../lib/kernel/api/errors.js';
import { LeaseLostError } from '../../../../lib/kernel/api/lease-errors.js';
import type { Lease } from '../../../../lib/kernel/api/lease.js';
import { fence, type FenceGuard } from '../../../../lib/fence.js';
import {
  type FencedCommand,
  MAX_COMMAND_PARTS,
  packCommands,
} from '../../../../lib/features/fence/redis/fenced-commands.js';
import { GUARD } from '../../../../lib/redis/script/scripts.js';
import { rejection } from '../../../support/expect/eventually.js';
import { FencedCommandError, StaleFencingTokenError } from '../../../../lib/features/fence/core/fence-errors.js';

type Sent = [command: string, args: unknown[]];

/** Imitates COMMAND INFO of a server that allows all commands in scripts. */
const allRunnable = (names: unknown[]): unknown => names.map((name) => [name, -1, ['write'], 1, 1, 1, [], [], [], []]);

/** A client that answers, or rejects, with these, one after another; and when it is asked what it runs in scripts. */
function scripted(...answers: unknown[]) {
  return scriptedBy(allRunnable, ...answers);
}

function scriptedBy(infoOf: (names: unknown[]) => unknown, ...answers: unknown[]) {
  const sent: Sent[] = [];
  const call = async (...command: Sent): Promise<unknown> => {
    if (command[0] === 'command') return infoOf(command[1].slice(1));
    sent.push(command);
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    return answer;
  };
  return { client: { call } as unknown as Redis, sent };
}

/** As ioredis rejects: the error carries the command with all its arguments. */
function replyError(message: string): Error {
  const error = Object.assign(new Error(message), { command: { name: 'evalsha', args: ['sha', 'a secret'] } });
  error.name = 'ReplyError';
  return error;
}

const LEASE = { fencingToken: 64, assertHeld: () => undefined } as unknown as Lease;

describe('fence.guard sends one script', () => {
  it('with the keys of the commands as keys, so that keyPrefix, slots and ACLs concern them', async () => {
    const { client, sent } = scripted(['done', 'OK', 2, null]);
    const value = Buffer.from([0, 255]);
    const replies = await fence.guard(client, { key: 'fence:a', token: 96, ttlMs: 60_000 }, [
      ['SET', 'a', 'a', 'PX', 1.5],
      ['mset', 'b', value, 'c', ''],
      ['XREAD', 'COUNT', 1, 'STREAMS', 's', 't', 0, 0],
      ['EXISTS'],
    ]);
    expect(replies).toEqual(['OK', 2, null]);
    const keys = ['fence:a', 'a', 'b', 'c', 's', 't'];
    expect(sent).toHaveLength(1);
    const [command, [sha, count, ...rest]] = sent[0]!;
    expect([command, sha, count, rest.slice(0, 6)]).toEqual(['evalsha', GUARD.sha, 6, keys]);
    expect(rest.slice(6, 9)).toEqual(['96', '60000', 'vkvvv vkvkv vvvvkkvv v']);
    const set = ['set', 'a', 'PX', '1.5'];
    expect(rest.slice(9)).toEqual([...set, 'mset', value, '', ...'xread COUNT 1 STREAMS 0 0 exists'.split(' ')]);
  });

  it('sends a module command as written, like redis.call()', () => {
    expect(packCommands([['JSON.SET', 'doc', '$', '{}']], 'guard')).toEqual({
      names: ['JSON.SET'],
      keys: [],
      layout: 'vvvv',
      values: ['json.set', 'doc', '$', '{}'],
    });
  });

  it('with the token of a lease, and not at all if the lease is known to be lost', async () => {
    const { client, sent } = scripted(['done']);
    await fence.guard(client, { key: 'k', lease: LEASE }, []);
    expect(sent[0]![1]).toContain('64');
    const lost = new LeaseLostError('a', 'notRenewed', 64);
    const assertHeld = (): never => {
      throw lost;
    };
    const guard = { key: 'k', lease: { ...LEASE, assertHeld } };
    expect(await rejection(fence.guard(client, guard, []))).toBe(lost);
    expect(sent).toHaveLength(1);
  });
});

describe('fence.guard asks Redis which commands run in scripts', () => {
  const write = (client: Redis) => fence.guard(client, { key: 'k', token: 1 }, [['SET', 'a', 'b']]);

  it('and sends nothing without a reply', async () => {
    const { client, sent } = scriptedBy(() => Promise.reject(new Error('Connection is closed.')));
    const error = await rejection(write(client));
    expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', cause: { failure: 'notExecuted' } });
    expect(error.message).not.toContain('may have been executed');
    expect(sent).toEqual([]);
  });

  it.each<[string, (names: unknown[]) => unknown]>([
    ['is no list', () => 'OK'],
    ['is of another length', () => []],
    ['has other entries', (names) => names.map(() => 'write')],
    ['says that it knows no COMMAND', () => Promise.reject(replyError("ERR unknown command 'command'"))],
  ])('and uses its own list if the reply %s, with one warning', async (_what, infoOf) => {
    const warn = jest.spyOn(process, 'emitWarning').mockReturnValue(undefined);
    const { client, sent } = scriptedBy(infoOf, ['done', 'OK'], ['done', 'OK']);
    await write(client);
    await write(client);
    expect(sent.map(([command]) => command)).toEqual(['evalsha', 'evalsha']);
    expect(warn).toHaveBeenCalledTimes(1);
    warn.mockRestore();
  });
});

describe('fence.guard reports the failure', () => {
  const write = (...answers: unknown[]) =>
    rejection<LockError>(
      fence.guard(scripted(...answers).client, { key: 'fence:a', token: 64 }, [
        ['SET', 'a', 'a secret'],
        ['rpush', 'b', 'a secret'],
      ]),
    );

  it('a stale token, and the one before it', async () => {
    const error = await write(['stale', '96']);
    expect(error).toBeInstanceOf(StaleFencingTokenError);
    expect(error).toMatchObject({ code: 'STALE_FENCING_TOKEN', resource: 'fence:a', token: 64, newestToken: 96 });
    expect(error.message).toMatch(
      /"fence:a" was refused: its fencing token 64 is stale.* 96\..*acquire the lock again/,
    );
  });

  it.each([['1'], [1]])('the command that failed, even to a client with stringNumbers (%j)', async (index) => {
    const error = await write(['failed', index, 'WRONGTYPE Operation against a key, on @user_script:9.']);
    expect(error).toBeInstanceOf(FencedCommandError);
    expect(error).toMatchObject({ code: 'FENCED_COMMAND_FAILED', resource: 'fence:a', index: 1, command: 'RPUSH' });
    expect(error.message).toMatch(
      /^Command 2 \(RPUSH\) under .* failed: WRONGTYPE Operation against a key\. Redis does/,
    );
  });

  it.each([
    ['WRONGTYPE Operation against a key', 'failed', 'Give the guard a key that nothing else uses'],
    ["CROSSSLOT Keys in request don't hash to the same slot", 'failed', 'the same hash tag'],
    ['NOPERM this user has no permissions', 'failed', 'needs EVALSHA, EVAL, GET, SET'],
    ['READONLY You cannot write against a read only replica.', 'failed', 'connect to the primary'],
  ])('a refusal: %s', async (message, lastAttempt, advice) => {
    const error = await write(replyError(message));
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(error).toMatchObject({ operation: 'write under the guard', lastAttempt });
    expect(error.message).toContain(advice);
    expect(error.message).not.toContain('may have been executed');
  });

  it('no reply: the commands may have run', async () => {
    const error = await write(new Error('Command timed out'));
    expect(error).toMatchObject({ code: 'LOCK_UNAVAILABLE', lastAttempt: 'timeout', cause: { failure: 'unknown' } });
    expect(error.message).toContain('may have been executed');
  });

  it.each([
    ['a refusal', [replyError('NOPERM no')]],
    ['an unknown command', [replyError("ERR unknown command 'EVALSHA', with args beginning with: 'a secret'")]],
    ['a failed fallback', [replyError('NOSCRIPT'), replyError('OOM command not allowed')]],
    ['a failed command', [['failed', 1, 'ERR no']]],
  ])('without the arguments: %s', async (_what, answers) => {
    const error = await write(...answers);
    for (const text of [error.message, JSON.stringify(error), inspect(error, { depth: 9, showHidden: true })]) {
      expect(text).not.toContain('a secret');
    }
  });
});

describe('fence.guard refuses before anything is sent', () => {
  const refused = async (guard: unknown, commands: unknown = []): Promise<InvalidLockOptionsError> => {
    const { client, sent } = scripted();
    const error = await rejection<InvalidLockOptionsError>(
      fence.guard(client, guard as FenceGuard, commands as FencedCommand[]),
    );
    expect(error).toBeInstanceOf(InvalidLockOptionsError);
    expect(sent).toEqual([]);
    return error;
  };

  it.each([[0], [1.5], [2 ** 53], ['64']])('the token %p', async (token) => {
    expect((await refused({ key: 'k', token })).option).toBe('token');
  });

  it.each([[''], ['\ud800'], [undefined]])('the key %p', async (key) => {
    expect((await refused({ key, token: 1 })).option).toBe('key');
  });

  it.each([[59_999], [365 * 86_400_000 + 1], ['60000']])('ttlMs %p', async (ttlMs) => {
    expect((await refused({ key: 'k', token: 1, ttlMs })).option).toBe('ttlMs');
  });

  it.each([[{ fencingToken: 64 }], [null], ['lease']])('the lease %p', async (lease) => {
    expect((await refused({ key: 'k', lease })).option).toBe('lease');
  });

  it.each(['read', 'semaphore'])('a lease with the mode %s, which cannot refuse a peer', async (mode) => {
    const { option, message } = await refused({ key: 'k', lease: { ...LEASE, mode, resources: ['stock:7'] } });
    expect(option).toBe('lease');
    expect(message).toMatch(`"stock:7" has the mode ${mode}: others hold it at the same time, with larger tokens`);
  });

  it('a lease without a token, neither token nor lease, both, and options it does not know', async () => {
    expect((await refused({ key: 'k', lease: { ...LEASE, fencingToken: undefined } })).option).toBe('token');
    expect((await refused({ key: 'k' })).option).toBe('token');
    expect((await refused({ key: 'k', token: 64, lease: LEASE })).option).toBe('token');
    expect((await refused({ key: 'k', token: 1, ttl: 1 })).message).toContain('Did you mean ttlMs?');
    expect((await refused(undefined)).option).toBe('the guard');
  });

  it.each<[string, unknown, RegExp]>([
    ['no array', null, /commands must be an array of commands, not null/],
    ['a command alone', ['SET', 'a', 'b'], /commands\[0\] must be a non-empty array such as/],
    ['a name with an argument', [['SET a', 'b']], /must begin with the name of a command/],
    ['undefined', [['SET', 'a', undefined]], /commands\[0\]\[2\] must be .*, not undefined/],
    ['an object', [['SET', 'a', {}]], /commands\[0\]\[2\] must be .*, not an object/],
    [
      'a transaction',
      [['MULTI']],
      /commands\[0\] is MULTI, which Redis does not run in scripts\. Send it without the guard\. Nothing was executed\.$/,
    ],
    [
      'the key of the guard',
      [
        ['SET', 'a', 'k'],
        ['DEL', 'a', 'k'],
      ],
      /commands\[1\] uses the key of the guard/,
    ],
    ['the same as a Buffer', [['GET', Buffer.from('k')]], /commands\[0\] uses the key of the guard/],
    ['too long a command', [['DEL', ...Array(MAX_COMMAND_PARTS).fill('a')]], /has 5001 parts, more than 5000/],
  ])('commands: %s', async (_what, commands, message) => {
    const error = await refused({ key: 'k', token: 1 }, commands);
    expect(error).toMatchObject({ option: 'commands', message: expect.stringMatching(message) });
  });

  it('a client that is none, and a pipeline', async () => {
    for (const client of [undefined, {}, 'redis://localhost', { call: () => undefined, isPipeline: true }]) {
      const error = await rejection(fence.guard(client as unknown as Redis, { key: 'k', token: 1 }, []));
      expect(error).toMatchObject({ code: 'INVALID_LOCK_OPTIONS', option: 'client' });
    }
  });
});
