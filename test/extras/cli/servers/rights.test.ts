import { readFileSync } from 'node:fs';
import { COMMANDS } from '../../../../lib/extras/cli/commands.js';
import { useAdmin, useInstances } from '../../../support/redis/lock-instances.js';
import { documentedUser } from '../../../support/redis/lock-user.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { runHere } from '../run-cli.js';

const PAGE = new URL('../../../../docs/operations/acl.md', import.meta.url);

/** The rules of the user who may look, of docs/operations/acl.md. */
function viewerRules(): string[] {
  const [, line] = /<!-- acl: look -->\s+```text\nuser locks-viewer (.+)\n```/.exec(readFileSync(PAGE, 'utf8')) ?? [];
  if (line === undefined) throw new Error('docs/operations/acl.md has no line for people who look');
  // A rule in brackets counts as one.
  return line.match(/\([^)]*\)|\S+/g)!;
}

/** `doctor` looks at more than a user of locks may, `ui` runs until it is stopped, and `completion` sends nothing. */
const TESTED_ELSEWHERE = ['doctor', 'ui', 'completion'];

/** Each read-only command, once for each line of arguments. A command that needs arguments gets them here. */
function readOnlyCalls(instanceId: string): string[][] {
  const lines: Readonly<Record<string, readonly string[][]>> = {
    ls: [[], ['--scan']],
    why: [['order:7']],
    who: [[instanceId]],
    contention: [['--for', '1ms']],
    watch: [['--for', '1ms']],
  };
  return COMMANDS.filter(({ name, isWriting }) => !isWriting && !TESTED_ELSEWHERE.includes(name)).flatMap(({ name }) =>
    (lines[name] ?? [[]]).map((line) => [name, ...line]),
  );
}

describe('the command line', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const start = useInstances(() => redis().url);
  const denied = async () => ((await admin().call('ACL', 'LOG')) as unknown[][]).map((entry) => entry.join(' '));
  const runAs = (name: string, rules: readonly string[]) => {
    const password = rules.find((rule) => rule.startsWith('>'))!.slice(1);
    const url = redis().url.replace('://', `://${name}:${password}@`);
    return (...argv: string[]) => runHere(argv, { env: { REDIS_URL: url }, isTerminal: true });
  };
  const fleet = async () => {
    const one = await start();
    const { fencingToken } = (await one.locks.acquire('order:7')) as { fencingToken: number };
    await one.locks.campaign('mailer').whenElected();
    return { ...one, fencingToken };
  };
  beforeEach(() => admin().call('ACL', 'LOG', 'RESET'));

  it('needs no more than the locks themselves', async () => {
    const { rules } = documentedUser();
    await admin().call('ACL', 'SETUSER', 'app', 'reset', ...rules);
    const run = runAs('app', rules);
    const { fencingToken, instanceId } = await fleet();
    for (const argv of readOnlyCalls(instanceId)) {
      expect([argv, await run(...argv)]).toEqual([argv, expect.objectContaining({ code: 0 })]);
    }
    expect((await run('release', 'order:7', '--token', `${fencingToken}`, '--yes')).code).toBe(0);
    expect(await denied()).toEqual([]);
  });

  it('looks at all with the rights of a person who looks, and changes nothing', async () => {
    const rules = viewerRules();
    await admin().call('ACL', 'SETUSER', 'viewer', 'reset', ...rules);
    const run = runAs('viewer', rules);
    const { fencingToken, instanceId } = await fleet();
    // `status` tries which rights it has.
    for (const argv of readOnlyCalls(instanceId).filter(([name]) => name !== 'status')) {
      expect([argv, await run(...argv)]).toEqual([argv, expect.objectContaining({ code: 0 })]);
    }
    expect(await denied()).toEqual([]);
    const status = await run('status');
    expect(status).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^locks +not tried: this user is read-only$/m),
    });

    const refused = { code: 3, stdout: '', stderr: expect.stringContaining('The ACL user needs') };
    const writing: Readonly<Record<string, readonly [line: readonly string[], ended: object]>> = {
      job: [['nightly', '--pause', '1h'], { code: 1 }],
      release: [['order:7', '--token', `${fencingToken}`, '--yes'], refused],
      exec: [['order:8', '--prefix', 'lock', '--wait', '10ms', '--', 'true'], refused],
    };
    expect(Object.keys(writing)).toEqual(COMMANDS.flatMap(({ name, isWriting }) => (isWriting ? [name] : [])));
    for (const [name, [line, ended]] of Object.entries(writing)) {
      expect([name, await run(name, ...line)]).toEqual([name, expect.objectContaining(ended)]);
    }
    expect(await admin().exists('lock:{order:7}', 'lock:{order:8}')).toBe(1);
  });

  it('says which right is missing, and no password', async () => {
    const rules = ['on', '>pw-5ecret', '~lock:*', '&lock:*', '+subscribe', '+client|setname'];
    await admin().call('ACL', 'SETUSER', 'nobody', 'reset', ...rules);
    const { code, stdout, stderr } = await runAs('nobody', rules)('ls', '--prefix', 'lock');
    expect({ code, stdout }).toEqual({ code: 3, stdout: '' });
    expect(stderr).toMatch(/NOPERM|may not/);
    expect(stderr).not.toContain('5ecret');
  });
});
