import { once } from 'node:events';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { PageServer } from '../../../lib/extras/cli/ui/page-server.js';
import type { ConsoleAnswers } from '../../../lib/extras/console/answers/console-answers.js';

describe('the server of ui', () => {
  let server: PageServer;
  let url: URL;

  beforeEach(async () => {
    const answers = {
      file: () => ({ status: 200, headers: {}, body: 'the page' }),
      view: () => Promise.reject(new Error('a bug')),
    } as unknown as ConsoleAnswers;
    server = new PageServer(answers, '/secret/');
    url = new URL(await server.listen(0));
  });

  afterEach(() => server.close());

  /** With a target that no HTTP client would send. @returns the status */
  async function get(target: string): Promise<number> {
    const socket = connect(Number(url.port), url.hostname);
    await once(socket, 'connect');
    socket.write(`GET ${target} HTTP/1.1\r\nHost: ${url.host}\r\nConnection: close\r\n\r\n`);
    return Number((await text(socket)).split(' ')[1]);
  }

  it.each(['//', '///', '//[', 'http://', 'http://[/', '/\\[', '*'])(
    'refuses a target that is no path of the console, and goes on: %s',
    async (target) => {
      expect([400, 404]).toContain(await get(target));
      expect(await get('/secret/')).toBe(200);
    },
  );

  it('answers 500 if the console fails, and continues', async () => {
    expect(await get('/secret/api/now')).toBe(500);
    expect(await get('/secret/')).toBe(200);
  });
});
