// Methods with `@DistributedLock`. What a compiler makes of the decorators: this file runs as it is.
import { DistributedLock } from '../../../../dist/esm/index.js';

export class Reports {
  async plain() {
    return 1;
  }

  async inBackground() {
    return 1;
  }
}

for (const [name, options] of [
  ['plain', { key: 'reports' }],
  ['inBackground', { key: 'reports-in-background', backgroundRelease: true }],
]) {
  const method = Object.getOwnPropertyDescriptor(Reports.prototype, name);
  const decorated = DistributedLock(options)(Reports.prototype, name, method);
  Object.defineProperty(Reports.prototype, name, decorated ?? method);
}

export const decorated = {
  'a method with `@DistributedLock`': { run: ({ reports }) => reports.plain() },
  'the method with `backgroundRelease`': { run: ({ reports }) => reports.inBackground() },
};
