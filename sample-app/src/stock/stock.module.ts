import { Module } from '@nestjs/common';
import { StockController } from './stock.controller.js';
import { StockService } from './stock.service.js';
import { StocktakingService } from './stocktaking.service.js';

@Module({ controllers: [StockController], providers: [StockService, StocktakingService], exports: [StockService] })
export class StockModule {}
