// A process that runs the compiled snippets of the guides one after another, and reports the output of each. Node is
// started with --import test/support/process/typescript-loader.mjs and snippet-loader.mjs.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { formatWithOptions } from 'node:util';

await import('reflect-metadata');
const { Logger } = await import('@nestjs/common');
const { NestFactory } = await import('@nestjs/core');
const { RedisLockModule, RedisLockService } = await import('nestjs-redis-lock');

Logger.overrideLogger(false);
const quiet = { logger: false, abortOnError: false };

let output = [];
let failure;
console.log = (...values) => output.push(formatWithOptions({ breakLength: Infinity }, ...values));
process.on('unhandledRejection', (error) => (failure ??= error));
process.on('uncaughtException', (error) => (failure ??= error));

for (const snippet of JSON.parse(readFileSync(process.argv[2], 'utf8'))) {
  output = [];
  failure = undefined;
  try {
    await run(snippet);
  } catch (error) {
    failure ??= error;
  }
  process.send({ where: snippet.where, output, error: failure?.stack });
}
process.disconnect();

/** With `locks`, as a global; an AppModule that it exports is started, and the program `after` gets a SnippetWorld. */
async function run({ file, redisUrl, after }) {
  const module = RedisLockModule.forRoot({ connection: redisUrl });
  const world = await NestFactory.createApplicationContext(module, quiet);
  globalThis.locks = world.get(RedisLockService);
  try {
    const snippet = await import(file);
    if (!snippet.AppModule) return;
    const app = await NestFactory.create(snippet.AppModule, quiet);
    try {
      await app.listen(0, '127.0.0.1');
      const url = await app.getUrl();
      const provider = (className) => app.get(snippet[className]);
      const { default: check } = await import(after);
      await check({ app, url, provider, assert, RedisLockService });
    } finally {
      await app.close();
    }
  } finally {
    await world.close();
  }
}
