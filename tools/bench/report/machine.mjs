// Describes the machine behind the numbers.
import { readFileSync } from 'node:fs';
import { cpus, release, totalmem, type } from 'node:os';
import { Redis } from 'ioredis';
import { CONTESTANTS } from '../contestants/index.mjs';

export function machine() {
  const processors = cpus();
  return {
    cpu: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
  };
}

/** @param {string} url of the Redis */
export async function versions(url) {
  const redis = new Redis(url);
  const [, server] = /redis_version:(\S+)/.exec(await redis.info('server'));
  redis.disconnect();
  const { dependencies } = readJson('../package.json');
  const packages = CONTESTANTS.flatMap((one) => (one.package ? [[one.package, dependencies[one.package]]] : []));
  const ours = readJson('../../../package.json');
  const installed = (name) => readJson(`../../../node_modules/${name}/package.json`).version;
  return {
    node: process.versions.node,
    redis: server,
    ioredis: dependencies.ioredis,
    '@nestjs/core': installed('@nestjs/core'),
    [ours.name]: ours.version,
    ...Object.fromEntries(packages),
  };
}

function readJson(path) {
  return JSON.parse(readFileSync(new URL(path, import.meta.url), 'utf8'));
}
