import { Module } from '@nestjs/common';
import { JobsController } from './jobs.controller.js';
import { OperatorsController } from './operators.controller.js';

@Module({ controllers: [OperatorsController, JobsController] })
export class OperatorsModule {}
