// Listeners and emitters for the tests.
import { Injectable } from '@nestjs/common';
import { EventEmitter2, OnEvent } from '@nestjs/event-emitter';
import { DistributedLock, RedisLockService } from 'nestjs-redis-lock';
import { gate } from '../../support/expect/tracked.js';

@Injectable()
export class Listeners {
  readonly seen: unknown[][] = [];
  running = 0;
  end = gate();

  constructor(private readonly locks: RedisLockService) {}

  @OnEvent('above')
  @DistributedLock('above')
  async above(id: number, note: string): Promise<void> {
    this.seen.push(['above', this.#lease, id, note]);
  }

  @DistributedLock((id: number) => `below:${id}`)
  @OnEvent('below')
  async below(id: number): Promise<void> {
    this.seen.push(['below', this.#lease, id]);
  }

  @OnEvent('several')
  @DistributedLock('several')
  async first(): Promise<void> {
    await this.#alone();
  }

  @OnEvent('several', { async: true, promisify: true })
  @DistributedLock('several')
  async second(): Promise<void> {
    await this.#alone();
  }

  @OnEvent('suppressed')
  @DistributedLock({ key: 'busy', waitMs: 0 })
  async suppressed(): Promise<void> {}

  @OnEvent('thrown', { suppressErrors: false })
  @DistributedLock({ key: 'busy', waitMs: 0 })
  async thrown(): Promise<void> {}

  @OnEvent('order.changed', { suppressErrors: false })
  @DistributedLock('order')
  async ofTheSameOrder(): Promise<void> {}

  /** Continues after the work that emitted its event. */
  @OnEvent('order.printed')
  async detached(): Promise<void> {
    this.seen.push(['printing', this.#lease]);
    await this.end.opened;
    this.seen.push(['after it', this.#lease]);
    await this.locks.using('order', () => void this.seen.push(['locked anew', this.#lease]));
  }

  /** Called by a timer of Node, when the emitter has returned. */
  @OnEvent('order.mailed', { async: true })
  async later(): Promise<void> {
    await this.end.opened;
    await this.ofTheSameOrder();
    this.seen.push(['mailed', this.#lease]);
  }

  get #lease(): string | undefined {
    return this.locks.current()?.resource;
  }

  async #alone(): Promise<void> {
    this.running++;
    await new Promise(setImmediate);
    this.seen.push(['several', this.running]);
    this.running--;
  }
}

@Injectable()
export class Orders {
  constructor(private readonly emitter: EventEmitter2) {}

  @DistributedLock('order')
  async emitAndWait(event: string): Promise<unknown> {
    return this.emitter.emitAsync(event);
  }

  @DistributedLock('order')
  async emit(event: string): Promise<void> {
    this.emitter.emit(event);
  }
}
