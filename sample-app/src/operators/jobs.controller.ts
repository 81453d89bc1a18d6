import {
  BadRequestException,
  Body,
  Controller,
  DefaultValuePipe,
  Delete,
  Get,
  HttpCode,
  Param,
  ParseIntPipe,
  Post,
  Put,
  Query,
  UseFilters,
  UseGuards,
} from '@nestjs/common';
import { type JobInfo, type JobRun, SingletonJobs } from 'nestjs-redis-lock/schedule';
import { JobNotFoundFilter } from './job-not-found.filter.js';
import { OperatorsGuard } from './operators.guard.js';

/** For people: what ran where and how it ended, a run at once, and a stop of a job on all instances. */
@Controller('operators/jobs')
@UseGuards(OperatorsGuard)
@UseFilters(JobNotFoundFilter)
export class JobsController {
  constructor(private readonly jobs: SingletonJobs) {}

  @Get()
  list(): Promise<JobInfo[]> {
    return this.jobs.list();
  }

  @Get(':name')
  show(@Param('name') name: string): Promise<JobInfo> {
    return this.jobs.get(name);
  }

  /** The newest run first. */
  @Get(':name/history')
  history(
    @Param('name') name: string,
    @Query('limit', new DefaultValuePipe(20), ParseIntPipe) limit: number,
  ): Promise<JobRun[]> {
    if (limit < 1 || limit > 1_000) throw new BadRequestException('limit must be 1 to 1000');
    return this.jobs.history(name, { limit });
  }

  /** Runs the job on this instance, and answers when it has ended: 423 where another run of it has not. */
  @Post(':name/runs')
  @HttpCode(204)
  async run(@Param('name') name: string, @Body('by') by?: unknown): Promise<void> {
    await this.jobs.runNow(name, { ...byOf(by) });
  }

  /** On all instances. Without `until`, the pause lasts until it is deleted. */
  @Put(':name/pause')
  @HttpCode(204)
  async pause(@Param('name') name: string, @Body('by') by?: unknown, @Body('until') until?: unknown): Promise<void> {
    await this.jobs.pause(name, { ...byOf(by), ...untilOf(until) });
  }

  @Delete(':name/pause')
  @HttpCode(204)
  async resume(@Param('name') name: string): Promise<void> {
    await this.jobs.resume(name);
  }
}

function byOf(by: unknown): { by?: string } {
  if (by === undefined) return {};
  if (typeof by === 'string' && by.length >= 1 && by.length <= 100) return { by };
  throw new BadRequestException('by must be 1 to 100 characters');
}

function untilOf(until: unknown): { until?: Date } {
  if (until === undefined) return {};
  const date = new Date(typeof until === 'string' ? until : Number.NaN);
  if (date.getTime() > Date.now()) return { until: date };
  throw new BadRequestException('until must be a time to come, such as 2030-01-01T00:00:00Z');
}
