import type { Finding } from '../../../../lib/features/fleet/core/findings/finding.js';
import { RedisJobStore } from '../../../../lib/features/jobs/redis/redis-job-store.js';
import { ConsoleAnswers } from '../../../../lib/extras/console/answers/console-answers.js';
import type { ConsoleBodies } from '../../../../lib/extras/console/bodies.js';
import { LockClient } from '../../../../lib/kernel/lock-client.js';
import { RedisLockStore } from '../../../../lib/redis/redis-lock-store.js';
import { describeOnMachine } from '../../../support/redis/describe-on-machine.js';
import { documentedUser } from '../../../support/redis/lock-user.js';
import { eventually } from '../../../support/expect/eventually.js';
import { useAdmin } from '../../../support/redis/lock-instances.js';
import { useRedis } from '../../../support/redis/redis-server.js';
import { SeededRandom } from '../../../support/world/seeded-random.js';
import { runHere } from '../run-cli.js';
import { TroubleProcess } from './trouble-fleet.js';

const ROUNDS = Number(process.env['FINDINGS_ROUNDS'] ?? (process.env['TEST_SPEED'] === 'long' ? 40 : 3));
const SEED = Number(process.env['FINDINGS_SEED'] ?? Date.now() % 1e6);
const LEASE_MS = 6_000;

interface Expected extends Pick<Finding, 'kind'> {
  readonly resource?: string;
  readonly instanceId?: string;
  readonly command: RegExp;
}
type Fleet = readonly [TroubleProcess, TroubleProcess, TroubleProcess];

describeOnMachine(`trouble of a fleet of three processes, seed ${SEED}`, () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  const random = new SeededRandom(SEED);
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random.fraction() * all.length)]!;
  const started: TroubleProcess[] = [];
  const clients: LockClient[] = [];
  const start = async (name: string, url = redis().url, leaseMs = LEASE_MS): Promise<TroubleProcess> => {
    const one = await TroubleProcess.start(url, name, leaseMs);
    started.push(one);
    return one;
  };
  const observer = async (): Promise<{ client: LockClient; store: RedisLockStore }> => {
    const instanceId = 'cli:console:1:x';
    const store = new RedisLockStore({ connection: redis().url, keyPrefix: 'lock', instanceId, leaseMs: LEASE_MS });
    const client = new LockClient({ store });
    clients.push(client);
    await store.start(10_000);
    return { client, store };
  };
  afterEach(async () => {
    await Promise.all(started.splice(0).map((each) => each.end()));
    await Promise.all(clients.splice(0).map((client) => client.shutdown(0)));
    await admin().replicaof('NO', 'ONE');
    await admin().config('SET', 'maxmemory', '0');
  });

  /** As a user without channels connects. */
  const withoutChannels = async (): Promise<string> => {
    const { rules } = documentedUser();
    await admin().call('ACL', 'SETUSER', 'deaf', 'reset', ...rules.filter((rule) => !rule.startsWith('&')));
    const password = rules.find((rule) => rule.startsWith('>'))!.slice(1);
    return redis().url.replace('://', `://deaf:${password}@`);
  };

  /** By kind. Each has names of its own, so two of them do not meet. */
  const TROUBLES: Readonly<Record<string, (fleet: Fleet) => Promise<Expected>>> = {
    async longWait([a, b]) {
      await a.ask('hold', 'order:42');
      await b.ask('wait', 'order:42', 12);
      return { kind: 'longWait', resource: 'order:42', instanceId: a.instanceId, command: /^who shop-1:/ };
    },
    async holderDead([, , c]) {
      const victim = await start('victim', redis().url, 2 * LEASE_MS);
      await victim.ask('hold', 'order:dead');
      await c.ask('wait', 'order:dead', 1);
      // It is renewed before, or it may be a fixed lease.
      await new Promise((resolve) => setTimeout(resolve, LEASE_MS * 0.75));
      await victim.end();
      const command = /^release order:dead --token \d+$/;
      return { kind: 'holderDead', resource: 'order:dead', instanceId: victim.instanceId, command };
    },
    async holderSilent([a]) {
      // Its lease outlasts whatever is planted beside it.
      const frozen = await start('frozen', redis().url, 20 * LEASE_MS);
      await frozen.ask('hold', 'order:frozen');
      await a.ask('wait', 'order:frozen', 1);
      frozen.child.kill('SIGSTOP');
      return { kind: 'holderSilent', resource: 'order:frozen', instanceId: frozen.instanceId, command: /^who frozen:/ };
    },
    async holderUnknown([, b]) {
      // Nothing shows if the holder of a lease that is not renewed is alive.
      const gone = await start('fixed', redis().url, 20 * LEASE_MS);
      await gone.ask('hold', 'order:fixed', false);
      await b.ask('wait', 'order:fixed', 1);
      await gone.end();
      const command = /^why order:fixed$/;
      return { kind: 'holderUnknown', resource: 'order:fixed', instanceId: gone.instanceId, command };
    },
    async instanceDeaf() {
      const deaf = await start('deaf', await withoutChannels());
      return { kind: 'instanceDeaf', instanceId: deaf.instanceId, command: /^who deaf:/ };
    },
    async lockOrder([, b]) {
      await b.ask('nest', 'stock:1', 'cart:1');
      await b.ask('nest', 'cart:1', 'stock:1');
      return { kind: 'lockOrder', instanceId: b.instanceId, command: /^who shop-2:/ };
    },
    async deadlock([a, b]) {
      await Promise.all([a.ask('cross', 'account:1', 'account:2'), b.ask('cross', 'account:2', 'account:1')]);
      return { kind: 'deadlock', command: /^release account:[12] --token \d+$/ };
    },
    async leaked([, , c]) {
      await c.ask('leak', 'import:acme');
      const command = /^release import:acme --token \d+$/;
      return { kind: 'leaked', resource: 'import:acme', instanceId: c.instanceId, command };
    },
    async leaderFlaps([a]) {
      await a.ask('flap', 'outbox');
      return { kind: 'leaderFlaps', resource: 'outbox', instanceId: a.instanceId, command: /^instances$/ };
    },
    async instanceBlocked([, b]) {
      await b.ask('hold', 'order:slow-loop');
      await b.ask('block', 2_500);
      return { kind: 'instanceBlocked', instanceId: b.instanceId, command: /^who shop-2:/ };
    },
    async jobFails([a]) {
      await a.ask('fail', 'invoices', 3);
      return { kind: 'jobFails', resource: 'invoices', instanceId: a.instanceId, command: /^job invoices --history$/ };
    },
    async jobNowhere() {
      const gone = await start('gone');
      await gone.ask('own', 'nightly');
      await gone.end();
      return { kind: 'jobNowhere', resource: 'nightly', instanceId: gone.instanceId, command: /^job nightly$/ };
    },
    async jobPaused([, b]) {
      await b.ask('own', 'mailing');
      await runHere(['job', 'mailing', '--pause', '--by', 'ann', '--prefix', 'lock'], {
        env: { REDIS_URL: redis().url },
      });
      return { kind: 'jobPaused', resource: 'mailing', command: /^job mailing --resume$/ };
    },
    async redisDown() {
      if (random.fraction() < 0.5) await admin().config('SET', 'maxmemory', '1');
      else await admin().replicaof('127.0.0.1', '1');
      return { kind: 'redisDown', command: /^doctor$/ };
    },
  };
  /** Redis still answers these questions if it refuses to write. The instances cannot be asked then. */
  const READABLE = ['jobFails', 'jobPaused'];

  /** The findings of the first command, and of the first page. */
  const look = async (answers: ConsoleAnswers): Promise<readonly (readonly Finding[])[]> => {
    const argv = ['status', '--json', '--prefix', 'lock'];
    const [{ stdout }, { body }] = await Promise.all([
      runHere(argv, { env: { REDIS_URL: redis().url } }),
      answers.view('now', new URLSearchParams(), undefined),
    ]);
    const { applications } = JSON.parse(stdout) as { applications: { findings: Finding[] }[] };
    return [applications[0]!.findings, (JSON.parse(body!) as ConsoleBodies['now']).findings];
  };
  const answersOf = async (): Promise<ConsoleAnswers> => {
    const { client, store } = await observer();
    const jobs = client.jobs.records(new RedisJobStore(store));
    const source = { service: 'default', client, jobs, leaseMs: null, ownJobs: () => new Set<string>() };
    return new ConsoleAnswers({
      title: 'Shop',
      sources: [source],
      actions: [],
      onError: (error) => expect(error).toBe(''),
    });
  };
  const startFleet = async (): Promise<Fleet> => [await start('shop-1'), await start('shop-2'), await start('shop-3')];

  const rounds = Array.from({ length: ROUNDS }, () => {
    const first = pick(Object.keys(TROUBLES));
    const others = Object.keys(TROUBLES).filter((kind) => {
      if (kind === first) return false;
      return first === 'redisDown' ? READABLE.includes(kind) : kind !== 'redisDown' || READABLE.includes(first);
    });
    return [first, pick(others)] as const;
  });

  it.each(rounds)('%s and %s are named by the first command and on the first page', async (...kinds) => {
    const fleet = await startFleet();
    const answers = await answersOf();
    const expected: Expected[] = [];
    // A dead holder is only seen in the last third of its lease, and nothing can be planted once Redis refuses.
    const order = ['instanceBlocked', 'holderDead', 'redisDown'];
    for (const kind of [...kinds].sort((a, b) => order.indexOf(a) - order.indexOf(b)))
      expected.push(await TROUBLES[kind]!(fleet));
    await eventually(async () => {
      for (const found of await look(answers)) {
        for (const { kind, resource, instanceId, command } of expected) {
          const named = found.find((each) => each.kind === kind && (!resource || each.resource === resource));
          expect([kind, named?.culprit?.instanceId]).toEqual([kind, instanceId ?? named?.culprit?.instanceId]);
          expect(named?.action.command.replace('npx nestjs-redis-lock ', '')).toMatch(command);
        }
      }
    }, 30_000);
  });

  const LIVING: Readonly<Record<string, () => Promise<TroubleProcess>>> = {
    async 'may not subscribe'() {
      return start('deaf', await withoutChannels());
    },
    async 'loses its subscription all the time'() {
      return start('cut');
    },
    async 'has a blocked event loop'() {
      return start('blocked');
    },
  };
  const living = Array.from(
    { length: ROUNDS },
    () => [pick(Object.keys(LIVING)), 500 + Math.floor(random.fraction() * 3_000)] as const,
  );

  it.each(living)('a living holder that %s is not called dead: %i', async (how, afterMs) => {
    const fleet = await startFleet();
    const answers = await answersOf();
    const holder = await LIVING[how]!();
    await holder.ask('hold', 'order:alive');
    await fleet[0].ask('wait', 'order:alive', 1);
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    const blocked = how.includes('blocked') ? holder.ask('block', LEASE_MS * 0.8) : undefined;
    for (const until = performance.now() + LEASE_MS; performance.now() < until;) {
      if (how.includes('loses')) await admin().call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      const [status, now] = await look(answers);
      const { stdout: ls } = await runHere(['ls', '--prefix', 'lock'], { env: { REDIS_URL: redis().url } });
      expect([...status!, ...now!].filter(({ kind }) => kind === 'holderDead')).toEqual([]);
      expect(ls).not.toMatch(/\bdead\b/);
    }
    await blocked;
  });
});
