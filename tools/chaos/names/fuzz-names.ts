import 'reflect-metadata';
import { startRedisServer } from '../../../scripts/redis-server.mjs';
import { fuzzKeys, type KeyFuzz } from '../../../test/support/names/key-collisions.js';
import { fuzzOptions, type OptionFuzz } from './options.js';
import { watchArguments } from './sent-arguments.js';
import { fuzzSharedNames, type SharedFuzz } from './shared-names.js';

export interface FuzzOptions {
  /** How many names and calls with options in all. One name in a hundred is locked on a Redis as well. */
  runs: number;
  seed: number;
}

export interface FuzzResult {
  seed: number;
  /** Names and calls together. */
  runs: number;
  keys: KeyFuzz;
  options: OptionFuzz;
  /** The same on a Redis, where each argument that it is sent is looked at. */
  sent: OptionFuzz;
  shared: SharedFuzz;
  /** Of all parts. None: no two names met, and nothing crashed. */
  violations: string[];
}

/** Hostile names and options: pure arithmetic for most of them, the published API for the rest. */
export async function fuzzNames({ runs, seed }: FuzzOptions): Promise<FuzzResult> {
  const keys = fuzzKeys(Math.ceil(runs * 0.6), seed);
  const options = await fuzzOptions(Math.ceil(runs * 0.4), seed);
  const sent = await fuzzOnRedis(Math.ceil(runs * 0.02), seed + 1);
  const shared = await fuzzSharedNames(Math.ceil(runs / 100), seed);
  const violations = [keys, options, sent, shared].flatMap((part) => part.violations);
  return { seed, runs: keys.names + options.calls + sent.calls, keys, options, sent, shared, violations };
}

async function fuzzOnRedis(calls: number, seed: number): Promise<OptionFuzz> {
  await using server = await startRedisServer();
  const unchecked = await watchArguments(server.url);
  const result = await fuzzOptions(calls, seed, server.url);
  return { ...result, violations: [...result.violations, ...(await unchecked())] };
}
