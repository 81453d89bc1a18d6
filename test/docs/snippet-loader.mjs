// `node --import <this file>`: snippets lie in a temporary folder, and import what a user's project would have installed.
import { register } from 'node:module';

const root = new URL('../../', import.meta.url);
const OURS = {
  'nestjs-redis-lock': 'lib/index.ts',
  'nestjs-redis-lock/schedule': 'lib/schedule.ts',
  'nestjs-redis-lock/migration': 'lib/migration.ts',
  'nestjs-redis-lock/telemetry': 'lib/telemetry.ts',
  'nestjs-redis-lock/prom-client': 'lib/prom-client.ts',
  'nestjs-redis-lock/health': 'lib/health.ts',
  'nestjs-redis-lock/testing': 'lib/testing.ts',
};

if (!import.meta.url.includes('?hooks')) register(`${import.meta.url}?hooks`);

export function resolve(specifier, context, next) {
  const ours = OURS[specifier];
  if (ours) return { url: new URL(ours, root).href, shortCircuit: true };
  const isFromSnippet = context.parentURL?.startsWith('file:') && !context.parentURL.startsWith(root.href);
  if (!isFromSnippet || /^(?:[./]|node:)/.test(specifier)) return next(specifier, context);
  return next(specifier, { ...context, parentURL: new URL('package.json', root).href });
}
