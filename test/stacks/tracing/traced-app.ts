// An application for both tracers, of which sentry-main.ts and otel-main.ts print what it did.
import 'reflect-metadata';
import type { AddressInfo } from 'node:net';
import {
  type CanActivate,
  Controller,
  type ExecutionContext,
  Get,
  Injectable,
  Module,
  Param,
  SetMetadata,
  UseGuards,
} from '@nestjs/common';
import { NestFactory, Reflector } from '@nestjs/core';
import { trace } from '@opentelemetry/api';
import { DistributedLock, key, LockHandler, RedisLockModule, RedisLockService } from 'nestjs-redis-lock';
import { openTelemetry } from 'nestjs-redis-lock/telemetry';

type Traced = (target: object, name: string, descriptor: PropertyDescriptor) => PropertyDescriptor | void;

/** Lets in only what the metadata of the method allows. */
@Injectable()
class Roles implements CanActivate {
  readonly #reflector = new Reflector();

  canActivate(context: ExecutionContext): boolean {
    return this.#reflector.get<string>('role', context.getHandler()) !== 'admin';
  }
}

const path = (context: ExecutionContext): string => context.getArgByIndex<{ url: string }>(0).url;
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));

interface Tracer {
  readonly connection: string;
  /** The decorator that makes a span of a method. */
  readonly traced: Traced;
  /** The names of the spans that have begun. */
  readonly begun: readonly string[];
}

export async function runStories({ connection, traced, begun }: Tracer): Promise<object> {
  @Injectable()
  class Work {
    constructor(private readonly locks: RedisLockService) {}

    see(): string {
      const span = trace.getActiveSpan();
      return `${span?.isRecording() ? 'in a span' : 'in none'}, ${this.locks.current()?.resource ?? 'unlocked'}`;
    }

    @traced
    @DistributedLock({ key: 'work', waitMs: 30_000 })
    async outerSpan(): Promise<string> {
      await settled();
      return this.see();
    }

    @DistributedLock({ key: 'work', waitMs: 30_000 })
    @traced
    async innerSpan(): Promise<string> {
      await settled();
      return this.see();
    }

    @DistributedLock({ key: (resource: string) => key`${resource}`, waitMs: 30_000 })
    async span(_resource: string): Promise<SpanIds> {
      await settled();
      return spanIds();
    }
  }

  @Controller()
  class Shop {
    constructor(private readonly work: Work) {}

    @Get('guarded-above')
    @traced
    @DistributedLock('x')
    @UseGuards(Roles)
    @SetMetadata('role', 'admin')
    async guardedAbove(): Promise<void> {}

    @Get('guarded-below')
    @DistributedLock('x')
    @traced
    @UseGuards(Roles)
    @SetMetadata('role', 'admin')
    async guardedBelow(): Promise<void> {}

    @LockHandler('x')
    @UseGuards(Roles)
    @SetMetadata('role', 'admin')
    @traced
    @Get('guarded-handler')
    async guardedHandler(): Promise<void> {}

    @traced
    @Get('handler-above')
    @LockHandler(path)
    async handlerAbove(): Promise<{ seen: string }> {
      await settled();
      return { seen: this.work.see() };
    }

    @LockHandler(path)
    @traced
    @Get('handler-below')
    async handlerBelow(): Promise<{ seen: string }> {
      await settled();
      return { seen: this.work.see() };
    }

    /** The span of the request, before and after a lock that 20 requests want, and the span of the lock. */
    @Get('span/:resource')
    async span(@Param('resource') resource: string): Promise<unknown> {
      return { before: spanIds(), under: await this.work.span(resource), after: spanIds() };
    }
  }

  @Module({
    imports: [RedisLockModule.forRoot({ connection, telemetry: openTelemetry({ metrics: false }) })],
    providers: [Work],
    controllers: [Shop],
  })
  class AppModule {}

  const app = await NestFactory.create(AppModule, { logger: false, forceCloseConnections: true });
  await app.listen(0, '127.0.0.1');
  const url = `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}`;
  const get = async (path: string): Promise<unknown> => {
    const response = await fetch(`${url}/${path}`);
    return response.ok ? ((await response.json()) as unknown) : response.status;
  };
  const locks = app.get(RedisLockService);
  const work = app.get(Work);

  // Both wait for the lock: by then, only the span above it has begun.
  const lease = await locks.acquire('work');
  const calls = [work.outerSpan(), work.innerSpan()];
  while ((await locks.inspect('work')).waiters.length === 0) await settled();
  const ofWork = (): string[] => begun.filter((name) => /^\S+Span$/.test(name));
  const begunWhileWaiting = ofWork();
  await lease.release();
  const stories = {
    seen: await Promise.all(calls),
    begunWhileWaiting,
    begunInTheEnd: ofWork(),
    guarded: await Promise.all(['above', 'below', 'handler'].map((where) => get(`guarded-${where}`))),
    handlers: await Promise.all(['above', 'below'].map((where) => get(`handler-${where}`))),
    spans: await Promise.all(Array.from({ length: 20 }, (_, index) => get(`span/r${index % 2}`))),
  };
  await app.close();
  return stories;
}

type SpanIds = Partial<Record<'trace' | 'span', string>>;

function spanIds(): SpanIds {
  const { traceId, spanId } = trace.getActiveSpan()?.spanContext() ?? {};
  return { trace: traceId, span: spanId };
}
