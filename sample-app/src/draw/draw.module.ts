import { Module } from '@nestjs/common';
import { PrizeDrawService } from './prize-draw.service.js';

@Module({ providers: [PrizeDrawService] })
export class DrawModule {}
