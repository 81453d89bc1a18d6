import { setTimeout as sleep } from 'node:timers/promises';
import { ConflictException, Injectable } from '@nestjs/common';
import { InjectRedisLock, type LockState, RedisLockService } from 'nestjs-redis-lock';
import { settings } from '../settings.js';
import { type Closing, LedgerRegister } from './ledger-register.js';

/**
 * Closes the books. A lock keeps two instances from closing at once, but cannot stop one that has stood still between its last
 * look at the lock and its write. The fencing token can: the register refuses a smaller one than it has seen.
 */
@Injectable()
export class LedgerService {
  constructor(
    @InjectRedisLock('ledger') private readonly locks: RedisLockService,
    private readonly register: LedgerRegister,
  ) {}

  async close(): Promise<Closing> {
    return this.locks.using('books', async ({ fencingToken }) => {
      // If the whole process stands still in here, nothing that it checks before it goes on would be true afterwards.
      await sleep(settings.bankMs);
      const closing = { token: fencingToken, closedBy: settings.instance };
      if (!(await this.register.write(closing))) {
        throw new ConflictException(`The books were closed by another instance; token ${closing.token} is out of date`);
      }
      return closing;
    });
  }

  async show(): Promise<{ closings: Closing[]; lock: LockState }> {
    return { closings: await this.register.closings(), lock: await this.locks.inspect('books') };
  }
}
