import { Controller, Get, Param } from '@nestjs/common';
import { type Run, RunBook } from './run-book.js';

@Controller('jobs/:job/runs')
export class RunBookController {
  constructor(private readonly runBook: RunBook) {}

  @Get()
  list(@Param('job') job: string): Promise<Run[]> {
    return this.runBook.runs(job);
  }
}
