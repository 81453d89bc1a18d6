import { Controller, Get } from '@nestjs/common';
import { type Bestsellers, BestsellersService } from './bestsellers.service.js';

@Controller()
export class BestsellersController {
  constructor(private readonly bestsellers: BestsellersService) {}

  @Get('bestsellers')
  read(): Promise<Bestsellers> {
    return this.bestsellers.read();
  }

  @Get('bestsellers-alone')
  readAlone(): Promise<Bestsellers> {
    return this.bestsellers.readAlone();
  }
}
