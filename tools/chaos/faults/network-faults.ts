import { setTimeout as sleep } from 'node:timers/promises';
import type { World } from '../world/world.js';
import type { Fault } from './fault.js';

/** Less than a lease, or more. */
function anyTime(world: World): number {
  return world.leaseMs * (0.2 + 1.2 * world.random.fraction());
}

/** Resolves with true if the event happened in time. */
function within(ms: number, event: Promise<void>): Promise<boolean> {
  return Promise.race([event.then(() => true), sleep(ms, false)]);
}

/** Longer than it takes to find out, by far: what is found out later counts as that long. */
const HUNG_AT_MOST_MS = 10_000;

/** Faults between a worker and Redis. All connections work again after each. */
export const networkFaults: readonly Fault[] = faults().map((fault) => ({
  ...fault,
  async inject(world, victim) {
    const happened = await fault.inject(world, victim);
    for (const proxy of victim.proxies) {
      proxy.delayMs = 0;
      proxy.heal();
    }
    return happened;
  },
}));

function faults(): Fault[] {
  return [
    {
      kind: 'network: delays',
      strikes: 'worker',
      async inject(world, { proxies: [proxy] }) {
        proxy!.delayMs = 5 + world.upTo(world.leaseMs / 3);
        await sleep(anyTime(world));
      },
    },
    {
      kind: 'network: drops what is sent',
      strikes: 'worker',
      async inject(world, { proxies: [proxy] }) {
        proxy!.dropAll(world.oneOf(['commands', 'subscriber', 'all'] as const));
        await sleep(anyTime(world));
      },
    },
    {
      kind: 'network: resets the connections',
      strikes: 'worker',
      async inject(world, { proxies: [proxy] }) {
        proxy!.reset(world.oneOf(['commands', 'subscriber', 'all'] as const));
        await sleep(world.leaseMs / 3);
      },
    },
    {
      kind: 'network: half-closes the connections',
      strikes: 'worker',
      async inject(world, { proxies: [proxy] }) {
        proxy!.halfClose(world.oneOf(['commands', 'subscriber', 'all'] as const));
        await sleep(world.leaseMs / 3);
      },
    },
    {
      kind: 'network: silent both ways',
      strikes: 'worker',
      async inject(world, { proxies: [proxy] }) {
        proxy!.blackHole('toServer');
        proxy!.blackHole('toClient');
        await sleep(anyTime(world));
      },
    },
    {
      kind: 'network: the subscriber hears nothing',
      strikes: 'worker',
      async inject(world, { proxies: [proxy] }) {
        proxy!.blackHole('toClient', 'subscriber');
        await sleep(2 * world.leaseMs);
        // Drops the delayed data, like a broken connection.
        proxy!.cut('subscriber');
      },
    },
    {
      kind: 'network: the connection for messages hangs',
      strikes: 'worker',
      async inject(world, { proxies: [proxy] }) {
        const found = proxy!.nextSubscriber();
        proxy!.forget('subscriber');
        // The fault ends when the worker has detected it.
        await within(HUNG_AT_MOST_MS, found);
      },
    },
    {
      kind: 'network: a reply is lost after Redis executed the command',
      strikes: 'worker',
      async inject(world, { proxies: [proxy] }) {
        const happened = await within(world.leaseMs, proxy!.loseNextReply('commands'));
        await sleep(world.leaseMs / 4);
        return happened;
      },
    },
    {
      kind: 'network: a request is sent again after the reconnect',
      strikes: 'worker',
      async inject(world, { proxies: [proxy] }) {
        const replayed = proxy!.replayOnReconnect();
        proxy!.reset('commands');
        return within(world.leaseMs, replayed);
      },
    },
  ];
}
