import { Module } from '@nestjs/common';
import { BestsellersController } from './bestsellers.controller.js';
import { BestsellersService } from './bestsellers.service.js';

@Module({ controllers: [BestsellersController], providers: [BestsellersService] })
export class BestsellersModule {}
