import type { AddressInfo } from 'node:net';
import { type DynamicModule, type INestApplication, type LoggerService, type ModuleMetadata } from '@nestjs/common';
import type { AbstractHttpAdapter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import { RedisLockModule } from 'nestjs-redis-lock';
import type { OptionsWithConnection, RedisLockModuleExtras } from '../../lib/nest/module/module-options.js';

/** The lock module without a Redis. */
export function inMemory(options: Partial<OptionsWithConnection & RedisLockModuleExtras> = {}): DynamicModule {
  return RedisLockModule.forRoot({ connection: 'memory:', shutdown: { drainMs: 0 }, ...options });
}

type LogLevel = 'log' | 'error' | 'warn' | 'debug';

/** Collects an application's log in place of the console. */
export class LogBook implements LoggerService {
  /** Everything it was given. */
  readonly calls: unknown[][] = [];
  readonly lines: { level: LogLevel; message: string; context: string }[] = [];

  log(message: unknown, ...rest: unknown[]): void {
    this.#note('log', message, rest);
  }

  error(message: unknown, ...rest: unknown[]): void {
    this.#note('error', message, rest);
  }

  warn(message: unknown, ...rest: unknown[]): void {
    this.#note('warn', message, rest);
  }

  debug(message: unknown, ...rest: unknown[]): void {
    this.#note('debug', message, rest);
  }

  /** The messages of this level. */
  at(level: LogLevel): string[] {
    return this.lines.filter((line) => line.level === level).map(({ message }) => message);
  }

  #note(level: LogLevel, message: unknown, rest: unknown[]): void {
    this.calls.push([message, ...rest]);
    const text = message instanceof Error ? `${message.name}: ${message.message}` : String(message);
    const context = rest.at(-1);
    this.lines.push({ level, message: text, context: typeof context === 'string' ? context : '' });
  }
}

export interface StartOptions extends ModuleMetadata {
  adapter?: AbstractHttpAdapter;
  override?: (builder: TestingModuleBuilder) => TestingModuleBuilder;
  /** Before the application starts: global filters, interceptors and the like. */
  configure?: (app: INestApplication) => unknown;
}

/** A running application, and what it logged. */
export interface RunningApp {
  readonly app: INestApplication;
  readonly log: LogBook;
  readonly url: string;
}

/** Starts applications that listen on a free port, and closes them after each test. */
export function useApps(): (options: StartOptions) => Promise<RunningApp> {
  const running: INestApplication[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((app) => app.close()));
  });
  return async ({ adapter, override, configure, ...metadata }) => {
    const log = new LogBook();
    const builder = Test.createTestingModule(metadata).setLogger(log);
    const testing = await (override?.(builder) ?? builder).compile();
    const app = testing.createNestApplication(adapter ?? new ExpressAdapter(), { forceCloseConnections: true });
    running.push(app);
    await configure?.(app);
    await app.listen(0, '127.0.0.1');
    return { app, log, url: `http://127.0.0.1:${(app.getHttpServer().address() as AddressInfo).port}` };
  };
}
