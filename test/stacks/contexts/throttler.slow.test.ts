import { runUnbundled } from '../../support/process/run-typescript.js';

describe('@nestjs/throttler', () => {
  it('a request that is refused takes no lock, wherever the decorators stand', async () => {
    const { code, stdout, stderr } = await runUnbundled(new URL('throttler-main.ts', import.meta.url));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual({
      method: { statuses: [201, 201, 429, 429], locked: ['order:7', 'order:7'] },
      above: { statuses: [200, 429, 429], locked: ['above'] },
      below: { statuses: [200, 429, 429], locked: ['below'] },
      often: { statuses: [200, 200, 200], locked: ['often', 'often', 'often'] },
    });
  });
});
