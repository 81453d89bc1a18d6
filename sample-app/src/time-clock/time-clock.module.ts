import { Global, Module } from '@nestjs/common';
import { TimeClockController } from './time-clock.controller.js';
import { TimeClock } from './time-clock.js';

@Global()
@Module({ controllers: [TimeClockController], providers: [TimeClock], exports: [TimeClock] })
export class TimeClockModule {}
