// The decorator beside the call it makes.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { DistributedLock, RedisLockModule, RedisLockService } from '../../../dist/esm/index.js';
import { quantile } from '../measure/statistics.mjs';
import { DECORATED, USING } from './decorated-names.mjs';

const WARM_UP_MS = 500;

class Reports {
  async build() {
    return 1;
  }
}

class AppModule {}

// What a compiler makes of the decorators: this file runs as it is.
const method = Object.getOwnPropertyDescriptor(Reports.prototype, 'build');
Object.defineProperty(
  Reports.prototype,
  'build',
  DistributedLock('decorated')(Reports.prototype, 'build', method) ?? method,
);
Injectable()(Reports);

/** @param {{ ms: number }} args */
export async function run({ url }, { ms }) {
  Module({ imports: [RedisLockModule.forRoot({ connection: url })], providers: [Reports] })(AppModule);
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  const [locks, reports] = [app.get(RedisLockService), app.get(Reports)];
  const body = async () => 1;
  const series = [
    { name: USING, call: () => locks.using('plain', body), took: [] },
    { name: DECORATED, call: () => reports.build(), took: [] },
  ];
  await takeTurns(series, WARM_UP_MS);
  for (const each of series) each.took = [];
  await takeTurns(series, ms);
  await app.close();
  return Object.fromEntries(
    series.map(({ name, took }) => [name, { p50Us: quantile(took, 0.5), p99Us: quantile(took, 0.99) }]),
  );
}

async function takeTurns(series, ms) {
  const endsAt = performance.now() + ms;
  let order = series;
  while (performance.now() < endsAt) {
    for (const { call, took } of order) {
      const startedAt = performance.now();
      await call();
      took.push((performance.now() - startedAt) * 1000);
    }
    order = order.toReversed();
  }
}
