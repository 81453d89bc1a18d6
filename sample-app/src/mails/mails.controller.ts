import { Body, Controller, Get, HttpCode, Param, Post } from '@nestjs/common';
import { settings } from '../settings.js';
import { MailerService } from './mailer.service.js';
import { type Mail, Outbox } from './outbox.js';
import { type Arrival, PostOffice } from './post-office.js';

@Controller()
export class MailsController {
  constructor(
    private readonly mailer: MailerService,
    private readonly outbox: Outbox,
    private readonly postOffice: PostOffice,
  ) {}

  @Get('mailer')
  leader(): { instance: string; leads: boolean } {
    return { instance: settings.instance, leads: this.mailer.leads() };
  }

  @Post('mailer/without-leader')
  @HttpCode(204)
  async sendWithoutLeader(): Promise<void> {
    await this.mailer.sendWithoutLeader();
  }

  @Get('boxes/:box')
  async show(@Param('box') box: string): Promise<{ waiting: Mail[]; arrivals: Arrival[]; delivered: string[] }> {
    const waiting = await this.outbox.waiting(box);
    return {
      waiting,
      arrivals: await this.postOffice.arrivals(box),
      delivered: await this.postOffice.delivered(box),
    };
  }

  @Post('boxes/:box')
  @HttpCode(204)
  async write(@Param('box') box: string, @Body('id') id: string, @Body('to') to: string): Promise<void> {
    await this.outbox.put(box, { id, to });
  }
}
