import { Controller, Get, Post } from '@nestjs/common';
import type { Closing } from './ledger-register.js';
import { LedgerService } from './ledger.service.js';

@Controller('ledger')
export class LedgerController {
  constructor(private readonly ledger: LedgerService) {}

  @Get()
  show(): ReturnType<LedgerService['show']> {
    return this.ledger.show();
  }

  @Post('closings')
  close(): Promise<Closing> {
    return this.ledger.close();
  }
}
