import { Module } from '@nestjs/common';
import { NightlyReportService } from './nightly-report.service.js';
import { ReportController } from './report.controller.js';

@Module({ controllers: [ReportController], providers: [NightlyReportService] })
export class ReportModule {}
