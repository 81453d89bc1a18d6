import { Module } from '@nestjs/common';
import { OperatorsController } from './operators.controller.js';

@Module({ controllers: [OperatorsController] })
export class OperatorsModule {}
