// Before each test file: the async contexts of the files that ran before in this process are taken out of service. Where Node
// follows them with hooks (before version 24), each AsyncLocalStorage that was ever used is copied with every promise: with a
// hundred of them, which fifty test files leave behind, a promise costs forty times as much.
import { AsyncLocalStorage } from 'node:async_hooks';

/** Of this process: core modules are the same in all test files. */
const USED = Symbol.for('nestjs-redis-lock.test.used-contexts');

/** Notes each storage that is used. */
function follow() {
  const used = new Set();
  const { run, enterWith } = AsyncLocalStorage.prototype;
  AsyncLocalStorage.prototype.run = function (...args) {
    used.add(this);
    return run.apply(this, args);
  };
  AsyncLocalStorage.prototype.enterWith = function (...args) {
    used.add(this);
    return enterWith.apply(this, args);
  };
  return used;
}

const used = (AsyncLocalStorage[USED] ??= follow());
for (const storage of used) storage.disable();
used.clear();
