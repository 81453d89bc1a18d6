import { Injectable } from '@nestjs/common';
import { Interval } from '@nestjs/schedule';
import { LeaderOnly } from 'nestjs-redis-lock';
import { SingletonCron, SingletonInterval, type SingletonRun } from 'nestjs-redis-lock/schedule';

@Injectable()
export class Jobs {
  readonly runs = { ticks: [] as string[], led: 0, polls: 0 };

  @SingletonCron('* * * * * *', { name: 'tick' })
  async tick({ tick }: SingletonRun): Promise<void> {
    this.runs.ticks.push(tick);
  }

  @Interval(100)
  @LeaderOnly('mailer')
  async sendMails(): Promise<void> {
    this.runs.led++;
  }

  @SingletonInterval('poll', 1_000)
  poll(): void {
    this.runs.polls++;
  }
}
