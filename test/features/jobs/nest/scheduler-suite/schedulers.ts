import { jest } from '@jest/globals';
import type { INestApplication, ModuleMetadata } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { ScheduleModule, SchedulerRegistry } from 'nestjs-redis-lock/schedule';
import { inMemory, LogBook } from '../../../../nest/nest-apps.js';

/** Starts applications with locks in memory under fake timers, which also are the clock of the locks. */
export function useSchedulers() {
  const running: INestApplication[] = [];

  beforeEach(() => {
    jest.useFakeTimers({ now: new Date('2020-01-01T00:00:00.000Z') });
  });

  afterEach(async () => {
    await Promise.all(running.splice(0).map((app) => app.close()));
    jest.useRealTimers();
  });

  return async (metadata: ModuleMetadata) => {
    const log = new LogBook();
    const imports = [inMemory(), ...(metadata.imports ?? [ScheduleModule.forRoot()])];
    const builder = Test.createTestingModule({ ...metadata, imports });
    const app = (await builder.setLogger(log).compile()).createNestApplication();
    running.push(app);
    await app.init();
    return { app, log, registry: app.get(SchedulerRegistry) };
  };
}

/** Lets time pass, and all promises settle. */
export const pass = (ms: number) => jest.advanceTimersByTimeAsync(ms);
