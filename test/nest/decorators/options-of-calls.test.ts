import { Controller, type ExecutionContext, Get, Injectable, Param } from '@nestjs/common';
import {
  DistributedLock,
  DistributedSemaphore,
  InvalidLockOptionsError,
  LockHandler,
  Once,
  type PlaceInLine,
  RedisLockService,
} from 'nestjs-redis-lock';
import { eventually, rejection } from '../../support/expect/eventually.js';
import { gate } from '../../support/expect/tracked.js';
import { inMemory, useApps } from '../nest-apps.js';

let told: unknown[] = [];
let finish = gate();

@Injectable()
class Chats {
  readonly name = 'chats';

  constructor(private readonly locks: RedisLockService) {}

  async #label(resource: string): Promise<unknown> {
    await finish.opened;
    return (await this.locks.inspect(resource)).holders[0]?.label;
  }

  @DistributedLock({
    key: (chat: string) => chat,
    label(this: Chats, chat: string, message?: number) {
      return { group: this.name, chat, message: message ?? null };
    },
    onWait(this: Chats, { ahead, holder }: PlaceInLine, chat: string, message?: number) {
      told.push([this.name, ahead, holder?.label, chat, message]);
    },
  })
  async answer(chat: string, _message?: number): Promise<unknown> {
    return this.#label(chat);
  }

  @DistributedSemaphore({
    key: 'models',
    permits: 1,
    label: (model: string) => ({ model }),
    onWait: ({ ahead }, model) => told.push([ahead, model]),
  })
  async permits(_model: string): Promise<unknown> {
    return this.#label('models');
  }

  @Once({ key: 'report', resultTtlMs: 1_000, label: (id: string) => ({ id }) })
  async report(_id: string): Promise<unknown> {
    return this.#label('once:report');
  }

  @DistributedLock({
    key: 'x',
    label: (): never => {
      throw new TypeError('no message');
    },
  })
  async throws(): Promise<void> {}

  @DistributedLock({ key: 'x', label: () => 'text' as never })
  async noLabel(): Promise<void> {}
}

@Controller('chats')
class ChatController {
  constructor(private readonly locks: RedisLockService) {}

  @Get(':id')
  @LockHandler({
    key: 'chat:handler',
    label: (context: ExecutionContext) => ({ path: context.switchToHttp().getRequest<{ url: string }>().url }),
    onWait: ({ ahead }, context) => told.push([ahead, context.getHandler().name]),
  })
  async handle(@Param('id') _id: string): Promise<unknown> {
    await finish.opened;
    return (await this.locks.inspect('chat:handler')).holders[0]?.label;
  }
}

describe('options that are functions of the arguments', () => {
  const start = useApps();
  let chats: Chats;
  let url: string;

  beforeEach(async () => {
    told = [];
    finish = gate();
    const started = await start({ imports: [inMemory()], providers: [Chats], controllers: [ChatController] });
    chats = started.app.get(Chats);
    url = started.url;
  });

  it('label a lock by the arguments of its call, with the object as this', async () => {
    finish.open();
    expect(await chats.answer('a', 1)).toEqual({ group: 'chats', chat: 'a', message: 1 });
    expect(await chats.answer('a')).toEqual({ group: 'chats', chat: 'a', message: null });
    expect(await chats.permits('large')).toEqual({ model: 'large' });
    expect(await chats.report('7')).toEqual({ id: '7' });
  });

  it('tell a call its place, with its arguments', async () => {
    const answers = [chats.answer('a', 1)];
    await eventually(async () => expect((await chats['locks'].inspect('a')).holders).toHaveLength(1));
    answers.push(chats.answer('a', 2), chats.answer('a', 3));
    const label = { group: 'chats', chat: 'a', message: 1 };
    await eventually(() =>
      expect(told).toEqual([
        ['chats', 0, label, 'a', 2],
        ['chats', 1, label, 'a', 3],
      ]),
    );
    const permits = [chats.permits('large'), chats.permits('small')];
    await eventually(() => expect(told).toContainEqual([0, 'small']));
    finish.open();
    await Promise.all([...answers, ...permits]);
  });

  it('get the execution context in a handler', async () => {
    const first = fetch(`${url}/chats/1`);
    await eventually(async () => expect((await chats['locks'].inspect('chat:handler')).holders).toHaveLength(1));
    const second = fetch(`${url}/chats/2`);
    await eventually(() => expect(told).toEqual([[0, 'handle']]));
    finish.open();
    expect(await (await first).json()).toEqual({ path: '/chats/1' });
    expect(await (await second).json()).toEqual({ path: '/chats/2' });
  });

  it('fail the call if the label function throws, or returns no label', async () => {
    const threw = await rejection(chats.throws());
    expect(threw).toBeInstanceOf(InvalidLockOptionsError);
    expect(threw).toMatchObject({ option: 'label', cause: new TypeError('no message') });
    expect(threw.message).toContain('The label function of Chats.throws threw: no message');
    expect((await rejection(chats.noLabel())).message).toContain('label must be a plain object');
  });
});
