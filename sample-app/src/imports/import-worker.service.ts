import { Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { RedisLockService } from 'nestjs-redis-lock';
import { settings } from '../settings.js';
import { type ImportJob, ImportQueue } from './import-queue.js';
import { ImportRegister } from './import-register.js';

/** Books the files that others have put into the queue, under the lock that came with them. */
@Injectable()
export class ImportWorker {
  constructor(
    private readonly locks: RedisLockService,
    private readonly queue: ImportQueue,
    private readonly register: ImportRegister,
  ) {}

  @Interval(settings.pollMs)
  async work(): Promise<void> {
    if (!settings.importsWork) return;
    const job = await this.queue.take();
    if (job) await this.finish(job);
  }

  private async finish({ lease: handedOn, begunBy, ...file }: ImportJob): Promise<void> {
    // It throws LeaseLostError after too long in the queue: then nothing is booked, and the file is to be sent again.
    await using lease = handedOn === undefined ? undefined : await this.locks.adopt(handedOn);
    if (lease) await this.register.book(file, lease.fencingToken);
    else await this.register.bookWithoutLock(file);
    const token = lease?.fencingToken ?? 0;
    await this.register.finish(file.batch, { file: file.file, begunBy, finishedBy: settings.instance, token });
    // The file is the id: one that is sent again counts once.
    await this.locks.latch(`import:${file.batch}`, file.files).countDown({ id: file.file });
  }
}
