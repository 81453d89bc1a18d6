import {
  type ArgumentsHost,
  Catch,
  type ExceptionFilter,
  Injectable,
  SetMetadata,
  type Type,
  UseFilters,
} from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { DistributedLock, LockBusyError, LockExceptionFilter, LockHandler } from 'nestjs-redis-lock';
import { inMemory, useApps } from '../nest-apps.js';

/** The metadata that Nest's decorator leaves on a method. */
const SubscribeMessage = () => SetMetadata('websockets:message_mapping', true);

@Catch(LockBusyError)
class BusyFilter implements ExceptionFilter {
  catch(_error: LockBusyError, _host: ArgumentsHost): void {}
}

@Catch()
class EveryFilter extends BusyFilter {}

@Catch(Error)
class ErrorFilter extends BusyFilter {}

@Catch(RangeError)
class OtherFilter extends BusyFilter {}

@Injectable()
class Orders {
  @SubscribeMessage()
  @LockHandler('x')
  handler(): void {}

  @DistributedLock('y')
  @SubscribeMessage()
  async method(): Promise<void> {}

  @DistributedLock('z')
  async noMessage(): Promise<void> {}

  @SubscribeMessage()
  notLocked(): void {}

  @SubscribeMessage()
  @UseFilters(LockExceptionFilter)
  @LockHandler('x')
  answered(): void {}
}

@Injectable()
class Inheriting extends Orders {}

@UseFilters(OtherFilter)
class WithOther extends Orders {}

const GATEWAYS_WITH_FILTER = [
  new LockExceptionFilter(),
  LockExceptionFilter,
  BusyFilter,
  new EveryFilter(),
  ErrorFilter,
].map((filter) => {
  @UseFilters(filter)
  class Filtered extends Orders {}
  return Filtered;
});

describe('locked messages of a gateway', () => {
  const start = useApps();
  const warningsOf = async (gateway: Type, provided: object | undefined): Promise<string[]> => {
    const filters = provided ? [{ provide: APP_FILTER, ...provided } as { provide: string; useValue: unknown }] : [];
    const imports = [inMemory(), inMemory({ service: 'other' })];
    return (await start({ imports, providers: [gateway, ...filters] })).log.at('warn');
  };
  const warning = (name: string): string =>
    `No exception filter answers the lock errors of ${name}.handler, ${name}.method: Nest runs no global filters for ` +
    `gateways, so the LockExceptionFilter in APP_FILTER does not reach them. Put @UseFilters(LockExceptionFilter) on ` +
    `${name}. See docs/guide/with-websockets.md.`;

  it.each([{ useClass: LockExceptionFilter }, { useValue: new LockExceptionFilter() }])(
    'are warned of, if only an APP_FILTER would answer for them: %o',
    async (provided) => {
      expect(await warningsOf(Orders, provided)).toEqual([warning('Orders')]);
    },
  );

  it('are warned of in a class that inherits them, and in one whose filter catches other errors', async () => {
    expect(await warningsOf(Inheriting, { useClass: LockExceptionFilter })).toEqual([warning('Inheriting')]);
    expect(await warningsOf(WithOther, { useClass: LockExceptionFilter })).toEqual([warning('WithOther')]);
  });

  it('are not warned of, if a filter of the gateway catches lock errors', async () => {
    for (const gateway of GATEWAYS_WITH_FILTER) {
      expect(await warningsOf(gateway, { useClass: LockExceptionFilter })).toEqual([]);
    }
  });
});
