// Before each test file: disables the AsyncLocalStorages of the files that ran before in this process. Before version 24, Node
// copies each one that was ever used with every promise: after fifty test files, a promise costs forty times as much.
import { AsyncLocalStorage } from 'node:async_hooks';

/** Kept on a core module, which all test files of a process share. */
const USED = Symbol.for('nestjs-redis-lock.test.used-contexts');

/** Notes each storage that is used, to disable it later. */
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
