import { Controller, Get, Param } from '@nestjs/common';
import { type CashUp, TillService } from './till.service.js';

@Controller('tills/:instance/counts')
export class TillsController {
  constructor(private readonly till: TillService) {}

  @Get()
  list(@Param('instance') instance: string): Promise<CashUp[]> {
    return this.till.counts(instance);
  }
}
