// Run as plain CommonJS, on the oldest and the newest majors. Node's require() loads Nest 12, which is ESM only. Jest's cannot before
// Node 24.9.
import assert from 'node:assert/strict';
import { proveHealth } from './health.js';
import { prove } from './prove.js';

assert.match(require.resolve('nestjs-redis-lock'), /dist.cjs/);
// Must exit by itself once both applications are closed; otherwise the caller's time limit fails.
void prove().then(proveHealth);
