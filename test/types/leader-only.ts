// Compiled by test/nest/types/types.slow.test.ts, never run.
import { applyDecorators } from '@nestjs/common';
import { expectTypeOf } from 'expect-type';
import {
  LeaderOnly,
  type Leadership,
  type Lease,
  type LeaseLostError,
  type NotLeaderError,
  type RedisLockService,
  type Term,
} from 'nestjs-redis-lock';

export class Jobs<T> {
  @LeaderOnly('jobs')
  async nothing(): Promise<void> {}

  @LeaderOnly({ name: 'jobs', leaseMs: 5_000, onLost: 'throw', service: 'billing' })
  async something(_id: string): Promise<number | undefined> {
    return 1;
  }

  @LeaderOnly('jobs')
  async unknown(value: unknown): Promise<unknown> {
    return value;
  }

  @LeaderOnly('jobs')
  async ofTheClass(value: T): Promise<T | undefined> {
    return value;
  }

  // @ts-expect-error elsewhere it gives undefined, which its callers are not told
  @LeaderOnly('jobs')
  async dishonest(): Promise<number> {
    return 1;
  }

  // @ts-expect-error null is not what it gives elsewhere
  @LeaderOnly('jobs')
  async nullable(): Promise<number | null> {
    return 1;
  }

  // @ts-expect-error not async
  @LeaderOnly('jobs')
  notAsync(): void {}

  // @ts-expect-error no name
  @LeaderOnly({ leaseMs: 5_000 })
  async noName(): Promise<void> {}

  // @ts-expect-error a misspelt option
  @LeaderOnly({ name: 'jobs', leasMs: 5_000 })
  async misspelt(): Promise<void> {}
}

export async function campaigns(locks: RedisLockService): Promise<void> {
  const leadership = locks.campaign('jobs', {
    leaseMs: 5_000,
    signal: AbortSignal.timeout(5),
    async onElected(term) {
      expectTypeOf(term).toEqualTypeOf<Term>();
    },
    onDemoted(reason, term) {
      expectTypeOf(reason).toEqualTypeOf<LeaseLostError | NotLeaderError>();
      expectTypeOf(term).toExtend<Lease>();
      if (reason.code === 'NOT_LEADER') expectTypeOf(reason.reason).not.toEqualTypeOf<string>();
    },
  });
  expectTypeOf(leadership).toEqualTypeOf<Leadership>();
  expectTypeOf(await leadership.run(() => 1)).toEqualTypeOf<number | undefined>();
  expectTypeOf(await leadership.run(async (term) => term.fencingToken)).toEqualTypeOf<number | undefined>();
  expectTypeOf(leadership.fencingToken).toEqualTypeOf<number | undefined>();
  expectTypeOf(await leadership.whenElected()).toEqualTypeOf<Term>();
  expectTypeOf(locks.leadership('jobs')).toEqualTypeOf<Leadership | undefined>();
  // @ts-expect-error one resource
  locks.campaign(['a', 'b']);
  // @ts-expect-error a candidate waits without a limit
  locks.campaign('jobs', { waitMs: 1_000 });
  // @ts-expect-error an assignment makes nobody the leader
  leadership.fencingToken = 1;
}

/** Several decorators may be one. */
export const OnLeader = applyDecorators(LeaderOnly('jobs'));
