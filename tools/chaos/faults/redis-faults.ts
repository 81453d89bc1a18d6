import { setTimeout as sleep } from 'node:timers/promises';
import type { ChaosRedis } from '../servers/chaos-redis.js';
import type { SentinelSet } from '../../../test/support/redis/sentinel-set.js';
import type { Span } from '../checkers/spans.js';
import type { SteppedClock } from '../servers/stepped-clock.js';
import type { World } from '../world/world.js';
import type { Fault } from './fault.js';

async function crash(redis: ChaosRedis): Promise<void> {
  await redis.kill();
  await redis.restart();
}

/** Reconnects all clients and answers the first command of each with BUSY. */
async function refuseHandshakes(redis: ChaosRedis, { slots, leaseMs }: World): Promise<void> {
  const busy = redis.busy(leaseMs / 2);
  await sleep(leaseMs / 8);
  for (const { proxies } of slots) for (const proxy of proxies) proxy.reset();
  await busy;
}

/** Faults on a Redis that keeps its data. */
export function redisFaults(redis: ChaosRedis): Fault[] {
  const fault = (kind: string, inject: (world: World) => Promise<unknown>): Fault => ({
    kind,
    strikes: 'redis',
    inject,
  });
  /** The history has the span without replies: a call that gives up in it must report an outage. */
  const outage = (kind: string, silence: (world: World) => Promise<Span>): Fault =>
    fault(kind, async (world) => {
      const victims = world.slots.map(({ worker }) => worker.instanceId);
      const { from, to: at } = await silence(world);
      world.say({ type: 'unanswered', from, at, victims });
    });
  return [
    fault('Redis: kill -9, with its data', () => crash(redis)),
    fault('Redis: SIGSTOP for less than a lease', ({ leaseMs }) => redis.pause(0.5 * leaseMs)),
    fault('Redis: SIGSTOP for more than a lease', ({ leaseMs }) => redis.pause(1.4 * leaseMs)),
    outage('Redis: gone for three leases', ({ leaseMs }) => redis.absent(3 * leaseMs)),
    outage('Redis: SIGSTOP for three leases', ({ leaseMs }) => redis.pause(3 * leaseMs)),
    // No silence: a script that has nothing to write is executed.
    fault('Redis: READONLY', ({ leaseMs }) => redis.readOnly(leaseMs)),
    fault('Redis: CLIENT KILL of the command connections', async () => (await redis.killClients('normal')) > 0),
    fault('Redis: CLIENT KILL of the subscribers', async () => (await redis.killClients('pubsub')) > 0),
    fault('Redis: SCRIPT FLUSH, again and again', ({ leaseMs }) => redis.flushScripts(leaseMs / 2)),
    fault('Redis: CLIENT PAUSE', (world) => redis.pauseClients(world.leaseMs / 2, world.oneOf(['ALL', 'WRITE']))),
    fault('Redis: BUSY', ({ leaseMs }) => redis.busy(leaseMs / 2)),
    fault('Redis: new connections are answered with BUSY', (world) => refuseHandshakes(redis, world)),
    fault('Redis: LOADING', ({ leaseMs }) => redis.loading(leaseMs / 2)),
    fault('Redis: out of memory, noeviction', ({ leaseMs }) => redis.refuseMemory(leaseMs / 2)),
  ];
}

/** Sets the wall clock of Redis back. Each step is permanent. */
export function clockFaults(clock: SteppedClock): Fault[] {
  const kind = 'wall clock of Redis -60 s';
  const inject = async ({ leaseMs }: World): Promise<void> => {
    clock.step(-60_000);
    await sleep(leaseMs);
  };
  return [{ kind, strikes: 'redis', movesClock: true, inject }];
}

/** Faults under which one Redis can't keep the promises. */
export function breakingFaults(redis: ChaosRedis, clock: SteppedClock | undefined): Fault[] {
  const breaks = { strikes: 'redis', breaksPromises: true } as const;
  const forward = async ({ leaseMs }: World): Promise<void> => {
    clock!.step(60_000);
    await sleep(leaseMs);
  };
  return [
    { kind: 'Redis: kill -9, without persistence', ...breaks, losesData: true, inject: () => crash(redis) },
    {
      kind: 'Redis: evicts locks',
      ...breaks,
      losesData: true,
      inject: async ({ leaseMs }) => (await redis.evict(leaseMs / 2)) > 0,
    },
    ...(clock ? [{ kind: 'wall clock of Redis +60 s', ...breaks, movesClock: true, inject: forward }] : []),
  ];
}

/** The primary dies, and its replica takes over: with all that the primary had acknowledged, or without the last of it. */
export function failOver(set: SentinelSet, lagging: boolean): Fault {
  const kind = `fail-over to a ${lagging ? 'lagging' : 'current'} replica`;
  return {
    kind,
    strikes: 'redis',
    breaksPromises: lagging,
    losesData: lagging,
    inject: () => set.failOver({ lagging }),
  };
}
