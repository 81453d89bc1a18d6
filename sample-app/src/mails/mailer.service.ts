import { Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { LeaderOnly, type Lease, RedisLockService } from 'nestjs-redis-lock';
import { settings } from '../settings.js';
import { Outbox } from './outbox.js';
import { PostOffice } from './post-office.js';

/** Empties the outbox on the instance that leads. When it dies another one leads, and continues from there. */
@Injectable()
export class MailerService {
  #isSending = false;

  constructor(
    private readonly locks: RedisLockService,
    private readonly outbox: Outbox,
    private readonly postOffice: PostOffice,
  ) {}

  @Interval(settings.pollMs)
  @LeaderOnly({ name: 'mailer', leaseMs: 2_000 })
  async send(): Promise<void> {
    // An interval does not wait for the run before it, and both would be the leader's.
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      await this.empty('mails', this.locks.current('leader:mailer')!);
    } finally {
      this.#isSending = false;
    }
  }

  /** The same without a leader, for the demo: every instance sends the mails that it finds. */
  async sendWithoutLeader(): Promise<void> {
    await this.empty('mails-without-leader');
  }

  leads(): boolean {
    return this.locks.leadership('mailer')?.isLeader() ?? false;
  }

  private async empty(box: string, term?: Lease): Promise<void> {
    for (const mail of await this.outbox.waiting(box)) {
      // For both cases: it must step down, or its lease has ended while it was blocked.
      if (term && (term.signal.aborted || !term.isHeld())) return;
      await this.postOffice.send(box, mail, term?.fencingToken ?? 0);
      await this.outbox.tickOff(box, mail);
    }
  }
}
