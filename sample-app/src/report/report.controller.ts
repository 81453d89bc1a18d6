import { Controller, Get, NotFoundException } from '@nestjs/common';
import { NightlyReportService, type Report } from './nightly-report.service.js';

@Controller('report')
export class ReportController {
  constructor(private readonly reports: NightlyReportService) {}

  @Get()
  async show(): Promise<Report> {
    const report = await this.reports.latest();
    if (!report) throw new NotFoundException('There is no report yet');
    return report;
  }
}
