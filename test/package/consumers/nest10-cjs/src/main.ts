// Run as plain CommonJS, on the oldest majors that are supported.
import assert from 'node:assert/strict';
import { proveHealth } from './health.js';
import { prove } from './prove.js';

assert.match(require.resolve('nestjs-redis-lock'), /dist.cjs/);
// It must end by itself once both applications are closed; the caller's time limit says whether it did.
void prove().then(proveHealth);
