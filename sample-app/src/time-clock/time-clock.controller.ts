import { Controller, Get, Param } from '@nestjs/common';
import { type Stamp, TimeClock } from './time-clock.js';

@Controller('time-clock/:place')
export class TimeClockController {
  constructor(private readonly timeClock: TimeClock) {}

  @Get()
  list(@Param('place') place: string): Promise<Stamp[]> {
    return this.timeClock.stamps(place);
  }
}
