import { Module } from '@nestjs/common';
import { TillService } from './till.service.js';
import { TillsController } from './tills.controller.js';

@Module({ controllers: [TillsController], providers: [TillService] })
export class TillsModule {}
