import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { whyUnreachable } from './database/why-unreachable.js';
import { settings } from './settings.js';

const trouble = await whyUnreachable(settings.redisUrl);
if (trouble) {
  console.error(`${trouble}\nThe shop keeps its stock there. Start a Redis, or set REDIS_URL=redis://host:6379.`);
  process.exit(1);
}
const app = await NestFactory.create(AppModule);
// On SIGTERM the shop takes no new locks, finishes what runs, releases, and exits.
app.enableShutdownHooks();
await app.listen(settings.port, settings.host);
new Logger('Shop').log(`${settings.instance} listens on ${await app.getUrl()}`);
