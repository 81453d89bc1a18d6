import { Module } from '@nestjs/common';
import { RedisLockModule } from 'nestjs-redis-lock';
import { settings } from '../settings.js';
import { LedgerController } from './ledger.controller.js';
import { LedgerDatabase } from './ledger-database.js';
import { LedgerRegister } from './ledger-register.js';
import { LedgerService } from './ledger.service.js';

/** The ledger has a lock service of its own, with short leases, as a part of the shop that may move to another Redis would. */
@Module({
  imports: [
    RedisLockModule.forRoot({
      service: 'ledger',
      global: false,
      connection: settings.redisUrl,
      keyPrefix: `${settings.shop}-ledger-lock`,
      instanceId: `${settings.instance}:${process.pid}`,
      leaseMs: 1_500,
    }),
  ],
  controllers: [LedgerController],
  providers: [LedgerDatabase, LedgerRegister, LedgerService],
})
export class LedgerModule {}
