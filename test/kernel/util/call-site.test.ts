import { applicationSiteOf } from '../../../lib/kernel/util/call-site.js';

describe('the site of a call', () => {
  const stackOf = (...lines: string[]) => ({ stack: ['Error', ...lines.map((line) => `    at ${line}`)].join('\n') });

  it('is the first line of the application, and not of a library or of Node', () => {
    const origin = stackOf(
      'Observable._trySubscribe (/app/node_modules/rxjs/dist/cjs/internal/Observable.js:41:25)',
      'async node:internal/process/task_queues:95:5',
      'Orders.ship (/app/dist/orders.js:4:2)',
    );
    expect(applicationSiteOf(origin)).toBe('Orders.ship (/app/dist/orders.js:4:2)');
  });

  it('is not known if only libraries have made it', () => {
    expect(applicationSiteOf(stackOf('file:///app/node_modules/@nestjs/core/router-execution-context.js:9:1'))).toBe(
      undefined,
    );
  });
});
