import { Module } from '@nestjs/common';
import { BasketsController } from './baskets.controller.js';
import { BasketsService } from './baskets.service.js';

@Module({ controllers: [BasketsController], providers: [BasketsService], exports: [BasketsService] })
export class BasketsModule {}
