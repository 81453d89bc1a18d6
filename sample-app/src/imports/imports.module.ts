import { Module } from '@nestjs/common';
import { ImportQueue } from './import-queue.js';
import { ImportRegister } from './import-register.js';
import { ImportWorker } from './import-worker.service.js';
import { ImportsController } from './imports.controller.js';
import { ImportsService } from './imports.service.js';

@Module({ controllers: [ImportsController], providers: [ImportsService, ImportWorker, ImportQueue, ImportRegister] })
export class ImportsModule {}
