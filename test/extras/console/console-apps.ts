import { createServer, request as send, type RequestListener } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import fastifyHelmet from '@fastify/helmet';
import {
  type CallHandler,
  ClassSerializerInterceptor,
  type DynamicModule,
  type ExecutionContext,
  type INestApplication,
  type NestInterceptor,
  VersioningType,
} from '@nestjs/common';
import { type AbstractHttpAdapter, Reflector } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import helmet from 'helmet';
import { map, type Observable } from 'rxjs';
import { inMemory, type RunningApp, useApps } from '../../nest/nest-apps.js';

/** It has no types. */
const compression = createRequire(import.meta.url)('compression') as (options: object) => RequestListener;

/** The environment of a console with `path: 'ops/locks'`. */
export interface Surroundings {
  /** The global one. */
  readonly prefix: string;
  readonly proxy: 'none' | 'strips' | 'keeps';
  /** With its defaults, and replies that are compressed where the platform is Express. */
  readonly helmet: boolean;
}

/** For `it.each`, on each platform. */
export const SURROUNDINGS: Surroundings[] = ['', 'v1/app'].flatMap((prefix) =>
  (['none', 'strips', 'keeps'] as const).flatMap((proxy) =>
    [false, true].map((each) => ({ prefix, proxy, helmet: each })),
  ),
);

/** Starts applications that do to their replies what applications do. @returns also where a browser finds the console */
export function useSurroundings() {
  const startApp = useApps();
  const startProxy = useProxies();
  return async (
    adapter: AbstractHttpAdapter,
    console: DynamicModule,
    { prefix, proxy, helmet: hasHelmet }: Surroundings,
  ): Promise<RunningApp & { readonly page: string }> => {
    const whole = [proxy === 'keeps' ? 'edge' : '', prefix].filter(Boolean).join('/');
    const running = await startApp({
      adapter,
      imports: [inMemory(), console],
      configure: async (app) => {
        if (whole !== '') app.setGlobalPrefix(whole);
        if (hasHelmet) await addHelmet(app);
        app.useGlobalInterceptors(
          new Wrapping(),
          new ClassSerializerInterceptor(new Reflector(), { transformerPackage: SPOILS }),
        );
        app.enableVersioning({ type: VersioningType.URI, defaultVersion: '7' });
      },
    });
    const base = proxy === 'none' ? running.url : await startProxy(running.url, proxy);
    return { ...running, page: `${base}/${prefix === '' ? '' : `${prefix}/`}ops/locks` };
  };
}

/** As their pages say: `helmet` and `compression` on Express, `@fastify/helmet` on Fastify. */
async function addHelmet(app: INestApplication): Promise<void> {
  if (app.getHttpAdapter().getType() === 'fastify') await (app as NestFastifyApplication).register(fastifyHelmet);
  else app.use(helmet(), compression({ threshold: 0 }));
}

/** In place of `class-transformer`: all that it is given becomes something else. */
const SPOILS = {
  classToPlain: () => ({ spoiled: true }),
  plainToInstance: <T>() => ({ spoiled: true }) as T,
};

/** Wraps the results of all handlers, as many applications do. */
export class Wrapping implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((data: unknown) => ({ data, wrapped: true })));
  }
}

/** A proxy in front of an application: what comes for `/edge` goes there, with that prefix or without it. */
function useProxies(): (target: string, prefix: 'strips' | 'keeps') => Promise<string> {
  const running: ReturnType<typeof createServer>[] = [];
  afterEach(async () => {
    for (const server of running.splice(0)) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });
  return async (target, prefix) => {
    const server = createServer((incoming, outgoing) => {
      const { url = '', method, headers } = incoming;
      if (!url.startsWith('/edge')) return void outgoing.writeHead(502).end();
      const path = prefix === 'strips' ? url.slice('/edge'.length) : url;
      const { hostname, port } = new URL(target);
      const passed = send({ hostname, port, path, method, headers: { ...headers, host: 'inner.test' } }, (answer) => {
        outgoing.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(outgoing);
      });
      passed.on('error', () => outgoing.destroy());
      incoming.pipe(passed);
    });
    running.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/edge`;
  };
}
