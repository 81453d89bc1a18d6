import { Logger } from '@nestjs/common';
import { DEFAULT_NAME } from '../service-parts.js';

/** The logger of a lock service: `RedisLock`, or `RedisLock:billing` for one with a name. */
export function loggerOf(name: string): Logger {
  return new Logger(name === DEFAULT_NAME ? 'RedisLock' : `RedisLock:${name}`);
}

/** Links the section of the page on the log. */
export function see(section: string): string {
  return `See docs/operations/logs.md#${section}.`;
}
