import { Body, Controller, Get, Post } from '@nestjs/common';
import { type Export, ExportsService } from './exports.service.js';

@Controller()
export class ExportsController {
  constructor(private readonly exports: ExportsService) {}

  @Get('exports')
  async show(): Promise<{ free: number }> {
    return { free: await this.exports.free() };
  }

  @Post('exports')
  run(@Body('customer') customer: string): Promise<Export> {
    return this.exports.run(customer);
  }

  @Post('exports-without-limit')
  runWithoutLimit(@Body('customer') customer: string): Promise<Export> {
    return this.exports.runWithoutLimit(customer);
  }
}
