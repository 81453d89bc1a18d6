import type { IncomingMessage, ServerResponse } from 'node:http';
import { Controller, Get, Req, Res } from '@nestjs/common';
import { exporter } from './metrics.js';

/** For Prometheus. The names of groups, jobs and leaderships are in it: keep it away from the internet. */
@Controller('metrics')
export class MetricsController {
  @Get()
  show(@Req() request: IncomingMessage, @Res() response: ServerResponse): void {
    exporter.getMetricsRequestHandler(request, response);
  }
}
