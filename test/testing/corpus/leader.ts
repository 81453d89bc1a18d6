import { Injectable } from '@nestjs/common';
import { RedisLockService } from 'nestjs-redis-lock';
import { raceCase } from './race-case.js';

/** The mails of a newsletter. */
class Outbox {
  readonly #sent: string[] = [];

  reset(): void {
    this.#sent.length = 0;
  }

  async unsent(): Promise<string[]> {
    return ['ann', 'bob'].filter((mail) => !this.#sent.includes(mail));
  }

  async send(mail: string): Promise<void> {
    this.#sent.push(mail);
  }

  get sentTwice(): number {
    return this.#sent.length - new Set(this.#sent).size;
  }
}

interface Newsletter {
  /** Sends what is not sent, once this instance leads. */
  lead(): Promise<void>;
}

@Injectable()
class NewsletterIgnoresSignal implements Newsletter {
  constructor(
    private readonly locks: RedisLockService,
    private readonly outbox: Outbox,
  ) {}

  async lead(): Promise<void> {
    const mailer = this.locks.campaign('newsletter');
    await mailer.whenElected();
    for (const mail of await this.outbox.unsent()) {
      await this.outbox.send(mail);
    }
    await mailer.resign();
  }
}

@Injectable()
class MendedNewsletter implements Newsletter {
  constructor(
    private readonly locks: RedisLockService,
    private readonly outbox: Outbox,
  ) {}

  async lead(): Promise<void> {
    const mailer = this.locks.campaign('newsletter');
    const term = await mailer.whenElected();
    for (const mail of await this.outbox.unsent()) {
      if (term.signal.aborted) break;
      await this.outbox.send(mail);
    }
    await mailer.resign();
  }
}

export const deafLeader = raceCase<Newsletter, Outbox>({
  bug: 'A leader that ignores its signal',
  broken: NewsletterIgnoresSignal,
  mended: MendedNewsletter,
  repository: Outbox,
  reads: ['unsent'],
  actors: { A: ({ service }) => service.lead(), B: ({ service }) => service.lead() },
  // The mail that is under way when the term is lost may be sent twice. No other may.
  invariant: ({ repository }) => (repository.sentTwice > 1 ? 'a deposed leader goes on' : undefined),
  story: /A .*is blocked.*B Outbox.send\("ann"\).*: a deposed leader goes on$/,
  options: { faults: ['stall'] },
});
