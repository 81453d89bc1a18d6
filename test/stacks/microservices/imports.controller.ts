import { Controller } from '@nestjs/common';
import {
  EventPattern,
  MessagePattern,
  Payload,
} from '@nestjs/microservices';
import { DistributedLock, key } from 'nestjs-redis-lock';

export interface Import {
  readonly messageId: string;
  readonly file: string;
}

@Controller()
export class ImportsController {
  readonly started: string[] = [];

  // The client gets an answer in either case.
  @MessagePattern('import.start')
  @DistributedLock({
    key: ({ file }: Import) => key`import:${file}`,
    waitMs: 0,
    onBusy: () => ({ isBusy: true }),
  })
  async start(@Payload() { file }: Import): Promise<{ isBusy: boolean }> {
    await this.import(file);
    return { isBusy: false };
  }

  // Redis delivers an event to every instance, and a broker may deliver a
  // message again. The first delivery runs. For a minute, no other delivery
  // with the same id does.
  @EventPattern('import.requested')
  @DistributedLock({
    key: ({ messageId }: Import) => key`message:${messageId}`,
    minHoldMs: 60_000,
    onBusy: 'skip',
  })
  async onRequested(@Payload() { file }: Import): Promise<void> {
    await this.import(file);
  }

  async import(file: string): Promise<void> {
    this.started.push(file);
  }
}
