import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { DistributedLock, key, RedisLockService } from 'nestjs-redis-lock';
import { Database } from '../database/database.js';
import { settings } from '../settings.js';

export interface Message {
  text: string;
  /** The places in line that its sender was told while it waited. */
  places: number[];
}

/** The shop's assistant. It answers a message from the whole chat, so two answers at once forget each other. */
@Injectable()
export class AdviceService {
  constructor(
    private readonly locks: RedisLockService,
    private readonly database: Database,
  ) {}

  /** One turn per chat, in order of arrival. The label says which message holds the chat. */
  @DistributedLock({
    key: (chat: string, _message: Message) => key`chat:${chat}`,
    label: (_chat, { text }) => ({ group: 'AdviceService.answer', message: text }),
    onWait: ({ ahead }, _chat, { places }) => void places.push(ahead + 1),
  })
  async answer(chat: string, message: Message): Promise<string[]> {
    return this.continue(chat, message, this.locks.current()?.signal);
  }

  /** A newer message cancels the answer to the one before it, and with it the call of the model. */
  @DistributedLock({
    key: (chat: string, _message: Message) => key`draft:${chat}`,
    cancellable: true,
    onBusy: 'cancelHolder',
  })
  async answerNewest(chat: string, message: Message): Promise<string[]> {
    return this.continue(chat, message, this.locks.current()?.signal);
  }

  /** The same without the lock, for the demo: messages get lost. */
  async answerWithoutLock(chat: string, message: Message): Promise<string[]> {
    return this.continue(chat, message);
  }

  private async continue(chat: string, { text }: Message, signal?: AbortSignal): Promise<string[]> {
    const history = (await this.database.json<string[]>(`chat:${chat}`)) ?? [];
    await sleep(settings.modelMs, undefined, { signal });
    signal?.throwIfAborted();
    const continued = [...history, text];
    await this.database.setJson(`chat:${chat}`, continued);
    return continued;
  }
}
