import fc from 'fast-check';
import type { LockOwner } from '../../../lib/kernel/store/lock-store.js';
import { MARKS } from '../../../lib/kernel/store/watch-store.js';
import type { PermitRequest } from '../../../lib/kernel/api/lock-options.js';

/** One who acts in a history: who it is, and what it wants whenever it wants something. */
export interface ActorPlan {
  /** Which client it belongs to. */
  readonly client: number;
  readonly mode: LockOwner['mode'];
  readonly permits?: PermitRequest;
  /** The label stored with its leases, and with its place. */
  readonly label?: string;
}

/** Leases and pauses count in units, whose length depends on the store: in memory time passes, on Redis it hardly does. */
export type Step =
  | { readonly verb: 'acquire'; readonly leases: number; readonly queues: boolean; readonly maxWaiters: number }
  /** All resources in one step, this one first. Permits are not acquired in that way. */
  /** Keeps its places, and its peers', in one step. */
  | { readonly verb: 'keep'; readonly leases: number }
  | { readonly verb: 'rotate'; readonly next: number; readonly leases: number; readonly maxWaiters: number }
  | { readonly verb: 'renew'; readonly leases: number; readonly exactly: boolean }
  | { readonly verb: 'setDepth'; readonly leases: number; readonly depth: number }
  | { readonly verb: 'downgrade'; readonly leases: number }
  | { readonly verb: 'release' | 'verify' }
  | { readonly verb: 'label'; readonly label: string | undefined }
  /** A release that leaves it taken for so many units since the grant, but for no more than the others. */
  | { readonly verb: 'retain'; readonly leases: number; readonly atMost: number }
  | { readonly verb: 'lowerPermits'; readonly count: number }
  | { readonly verb: 'resize'; readonly total: number }
  | { readonly verb: 'watch'; readonly mark: number }
  /** The lease of the holder with this number; or a token without a holder. */
  | { readonly verb: 'forceRelease'; readonly holder: number }
  | { readonly verb: 'pass'; readonly units: number }
  /** The last of the clients dies. */
  | { readonly verb: 'kill' };

export type PlannedStep = Step & { readonly actor: number; readonly resource: string };

export interface HistoryPlan {
  readonly actors: readonly ActorPlan[];
  readonly steps: readonly PlannedStep[];
}

export const CLIENTS = 3;
const ACTORS = 8;
/** The second one is a pattern for code that doesn't take names literally. */
export const RESOURCES = ['stock', 's*[a-z]?'] as const;

/** With what could be taken for an end, a field or a line. */
const LABELS = ['{"group":"Orders.pay"}', '{"n":"7 8 9","of":["} {","é\u2028"]}', '{}'] as const;

const mutexActor = fc.record({
  client: fc.nat(CLIENTS - 1),
  mode: fc.constantFrom('exclusive' as const, 'reentrant', 'read', 'read', 'read', 'read', 'write', 'write'),
});

const semaphoreActor: fc.Arbitrary<ActorPlan> = fc
  .record({
    client: fc.nat(CLIENTS - 1),
    total: fc.constantFrom(3, 3, 3, 3, 2, 5),
    count: fc.constantFrom(1, 1, 1, 2, 3),
    isResized: fc.constantFrom(false, false, false, false, true),
  })
  .map(({ client, total, count, isResized }) => ({
    client,
    mode: 'semaphore',
    permits: { total, count: Math.min(count, total), isResized },
  }));

const labelled = (actor: fc.Arbitrary<ActorPlan>): fc.Arbitrary<ActorPlan> =>
  fc
    .tuple(actor, fc.constantFrom(undefined, undefined, LABELS[0], LABELS[1]))
    .map(([plan, label]) => (label === undefined ? plan : { ...plan, label }));

const actors = fc.oneof(
  ...[mutexActor, semaphoreActor, fc.oneof(mutexActor, semaphoreActor)].map((actor) =>
    fc.array<ActorPlan>(labelled(actor), { minLength: ACTORS, maxLength: ACTORS }),
  ),
);

const leases = fc.integer({ min: 1, max: 5 });
const maxWaiters = fc.constantFrom(100, 100, 100, 1, 3);
const next = fc.nat(ACTORS - 1);
const is = <T extends string>(verb: T) => fc.constant(verb);
const often = (weight: number, arbitrary: fc.Arbitrary<Step>) => ({ weight, arbitrary });

const acquire = (queues: boolean) =>
  fc.record({ verb: is('acquire'), leases, queues: fc.constant(queues), maxWaiters });

function step(withTime: boolean): fc.Arbitrary<Step> {
  return fc.oneof(
    often(18, acquire(true)),
    often(6, acquire(false)),
    often(8, fc.record({ verb: fc.constantFrom('release' as const, 'release', 'release', 'release', 'verify') })),
    often(3, fc.record({ verb: is('retain'), leases, atMost: fc.integer({ min: 0, max: 5 }) })),
    often(3, fc.record({ verb: is('rotate'), next, leases, maxWaiters })),
    often(6, fc.record({ verb: is('keep'), leases })),
    often(2, fc.record({ verb: is('renew'), leases, exactly: fc.boolean() })),
    often(1, fc.record({ verb: is('setDepth'), leases, depth: fc.integer({ min: 1, max: 4 }) })),
    often(4, fc.record({ verb: is('downgrade'), leases })),
    often(3, fc.record({ verb: is('label'), label: fc.constantFrom(undefined, ...LABELS) })),
    often(4, fc.record({ verb: is('watch'), mark: fc.nat(MARKS - 1) })),
    often(2, fc.record({ verb: is('lowerPermits'), count: fc.integer({ min: 1, max: 2 }) })),
    often(1, fc.record({ verb: is('resize'), total: fc.integer({ min: 1, max: 5 }) })),
    often(1, fc.record({ verb: is('forceRelease'), holder: fc.nat(3) })),
    ...(withTime ? [often(4, fc.record({ verb: is('pass'), units: fc.constantFrom(0.5, 1, 1, 2, 6) }))] : []),
  );
}

/** Actions of several owners on a few resources, one after another; now and then a client dies. */
export function historyPlan(withTime: boolean): fc.Arbitrary<HistoryPlan> {
  const resource = fc.constantFrom(RESOURCES[0], RESOURCES[0], RESOURCES[0], RESOURCES[1]);
  const planned = fc
    .tuple(step(withTime), fc.nat(ACTORS - 1), resource)
    .map(([one, actor, name]): PlannedStep => ({ ...one, actor, resource: name }));
  const steps = fc
    .tuple(
      fc.array(planned, { minLength: 1, maxLength: 80, size: 'max' }),
      fc.option(fc.nat(80), { freq: 3, nil: undefined }),
    )
    .map(([all, killAt]): PlannedStep[] => {
      if (killAt === undefined || killAt >= all.length) return all;
      return all.toSpliced(killAt, 0, { verb: 'kill', actor: 0, resource: RESOURCES[0] });
    });
  return fc.record({ actors, steps });
}
