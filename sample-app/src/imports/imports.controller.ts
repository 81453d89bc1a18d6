import { Body, Controller, Get, HttpCode, Param, ParseIntPipe, Post, Query } from '@nestjs/common';
import { ImportsService } from './imports.service.js';

@Controller('imports/:batch')
export class ImportsController {
  constructor(private readonly imports: ImportsService) {}

  @Get()
  result(
    @Param('batch') batch: string,
    @Query('files', ParseIntPipe) files: number,
  ): ReturnType<ImportsService['result']> {
    return this.imports.result(batch, files);
  }

  @Get('progress')
  async progress(@Param('batch') batch: string): Promise<{ total: number }> {
    return { total: await this.imports.progress(batch) };
  }

  @Post('files/:file')
  @HttpCode(202)
  async begin(
    @Param('batch') batch: string,
    @Param('file') file: string,
    @Body('orders', ParseIntPipe) orders: number,
    @Body('files', ParseIntPipe) files: number,
  ): Promise<void> {
    await this.imports.begin({ batch, file, orders, files });
  }

  @Post('files/:file/without-handover')
  @HttpCode(202)
  async beginWithoutHandover(
    @Param('batch') batch: string,
    @Param('file') file: string,
    @Body('orders', ParseIntPipe) orders: number,
    @Body('files', ParseIntPipe) files: number,
  ): Promise<void> {
    await this.imports.beginWithoutHandover({ batch, file, orders, files });
  }
}
