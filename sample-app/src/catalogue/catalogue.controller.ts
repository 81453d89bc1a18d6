import { Body, Controller, Get, ParseIntPipe, Post } from '@nestjs/common';
import { CatalogueService, type Price } from './catalogue.service.js';

@Controller()
export class CatalogueController {
  constructor(private readonly catalogue: CatalogueService) {}

  @Get('catalogue')
  read(): Promise<Price[]> {
    return this.catalogue.read();
  }

  @Get('catalogue-without-lock')
  readWithoutLock(): Promise<Price[]> {
    return this.catalogue.readWithoutLock();
  }

  @Post('catalogue/editions')
  edit(@Body('cents', ParseIntPipe) cents: number): Promise<Price[]> {
    return this.catalogue.edit(cents);
  }
}
