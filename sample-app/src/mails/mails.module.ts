import { Module } from '@nestjs/common';
import { MailerService } from './mailer.service.js';
import { MailsController } from './mails.controller.js';
import { Outbox } from './outbox.js';
import { PostOffice } from './post-office.js';

@Module({ controllers: [MailsController], providers: [MailerService, Outbox, PostOffice] })
export class MailsModule {}
