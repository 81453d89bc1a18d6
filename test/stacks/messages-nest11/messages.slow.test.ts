import { runUnbundled } from '../../support/process/run-typescript.js';

interface Event {
  readonly event: string;
  readonly data: unknown;
}

interface Stories {
  readonly answers: readonly Event[];
  readonly told: Event;
  readonly acknowledged?: unknown;
  readonly ran: number;
  readonly byGlobalFilters: readonly Event[];
}

interface Hybrid {
  readonly counted: string;
  readonly refused: unknown;
}

const BUSY = {
  status: 'error',
  message: 'Another request is working on this. Try again later.',
  code: 'LOCK_BUSY',
  retryAfterMs: expect.any(Number),
};
const UNKNOWN = { status: 'error', message: 'Internal server error' };

describe('on Nest 11', () => {
  let stories: Record<'socket.io' | 'ws', Stories> & Record<'inheriting' | 'separate', Hybrid>;
  beforeAll(async () => {
    const { code, stdout, stderr } = await runUnbundled(new URL('messages-main.ts', import.meta.url));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    stories = JSON.parse(stdout) as typeof stories;
  });

  describe.each(['socket.io', 'ws'] as const)('a gateway on %s', (platform) => {
    it('locks, and answers through its own filter', () => {
      const { answers, told, acknowledged } = stories[platform];
      const done = { event: 'done', data: 'order:7' };
      expect(answers).toEqual([done, done]);
      expect(told).toEqual({ event: 'exception', data: { ...BUSY, cause: { pattern: 'busy', data: '7' } } });
      expect(acknowledged).toEqual(platform === 'ws' ? undefined : BUSY);
    });

    it('a client that disconnects stops waiting, and its handler does not run', () => {
      expect(stories[platform].ran).toBe(1);
    });

    it('no global filter answers: on ws, Nest 11 tells the client nothing at all', () => {
      const done = { event: 'done', data: 'order:8' };
      const exception = { event: 'exception', data: { ...UNKNOWN, cause: { pattern: 'busy', data: null } } };
      // Either may come first.
      const told = stories[platform].byGlobalFilters.toSorted((one, other) => (one.event < other.event ? 1 : -1));
      expect(told).toEqual(platform === 'ws' ? [done] : [exception, done]);
    });
  });

  it('a hybrid application passes global filters on with inheritAppConfig only', () => {
    expect(stories.inheriting).toEqual({ counted: 'counted A1', refused: BUSY });
    expect(stories.separate).toEqual({ counted: 'counted A1', refused: UNKNOWN });
  });
});
