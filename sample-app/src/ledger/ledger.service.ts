import { setTimeout as sleep } from 'node:timers/promises';
import { ConflictException, Injectable } from '@nestjs/common';
import { InjectRedisLock, type LockState, RedisLockService } from 'nestjs-redis-lock';
import { StaleFencingTokenError } from 'nestjs-redis-lock/fence';
import { settings } from '../settings.js';
import { type Closing, LedgerRegister } from './ledger-register.js';

/**
 * Closes the books. A lock keeps two instances from closing at once, but cannot stop one that was paused between its
 * last check of the lock and its COMMIT. The fencing token can: the transaction is refused if a larger one was used.
 */
@Injectable()
export class LedgerService {
  constructor(
    @InjectRedisLock('ledger') private readonly locks: RedisLockService,
    private readonly register: LedgerRegister,
  ) {}

  async close(): Promise<Closing> {
    return this.locks.using('books', async (lease) => {
      const closing = { token: lease.fencingToken, closedBy: settings.instance };
      lease.assertHeld();
      // If the whole process is paused in here, its check is outdated afterwards.
      await sleep(settings.bankMs);
      await this.register.write(closing).catch((error: unknown) => {
        if (!(error instanceof StaleFencingTokenError)) throw error;
        throw new ConflictException(error.message, error.name);
      });
      return closing;
    });
  }

  async show(): Promise<{ closings: Closing[]; lock: LockState }> {
    return { closings: await this.register.closings(), lock: await this.locks.inspect('books') };
  }
}
