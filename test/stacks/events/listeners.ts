// Listeners for the tests.
import { Injectable } from '@nestjs/common';
import { OnEvent } from '@nestjs/event-emitter';
import { DistributedLock, RedisLockService } from 'nestjs-redis-lock';

@Injectable()
export class Listeners {
  readonly seen: unknown[][] = [];

  constructor(private readonly locks: RedisLockService) {}

  @OnEvent('above')
  @DistributedLock('above')
  async above(id: number, note: string): Promise<void> {
    this.seen.push(['above', this.locks.current()?.resource, id, note]);
  }

  @DistributedLock((id: number) => `below:${id}`)
  @OnEvent('below')
  async below(id: number): Promise<void> {
    this.seen.push(['below', this.locks.current()?.resource, id]);
  }

  @OnEvent('suppressed')
  @DistributedLock({ key: 'busy', waitMs: 0 })
  async suppressed(): Promise<void> {}

  @OnEvent('thrown', { suppressErrors: false })
  @DistributedLock({ key: 'busy', waitMs: 0 })
  async thrown(): Promise<void> {}
}
