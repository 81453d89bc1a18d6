// Serves the console of a shop: what the application would send, without Nest and without Redis.
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { ConsoleAnswers } from '../../lib/extras/console/answers/console-answers.js';
import type { Reply } from '../../lib/extras/console/answers/reply.js';
import type { ConsoleAction } from '../../lib/extras/console/bodies.js';
import { SystemClock } from '../../lib/kernel/util/clock.js';
import { Shop, type World } from './shop.js';

interface Call {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

interface Answer {
  readonly status: number;
  readonly type?: string;
  readonly body: string | object;
}

/** @param world its actions are those that the page may offer */
export async function serveShop({
  actions = [],
  ...world
}: World & { readonly actions?: readonly ConsoleAction[] } = {}) {
  const shop = new Shop(world);
  const state = {
    shop,
    /** Set: what each call of the API answers instead. */
    instead: undefined as Answer | undefined,
    /** Each call of the API. */
    calls: [] as Call[],
    /** Answers an action. */
    act: (_action: string, body: object): Answer => ({ status: 200, body: { by: 'ann@garden.example', ...body } }),
    /** The clock of Redis. */
    now: () => Date.now(),
  };
  const answers = () =>
    new ConsoleAnswers({
      title: 'Garden & Tools shop',
      sources: [shop],
      actions,
      clock: Object.assign(new SystemClock(), { wallNow: () => state.now() }),
      onError: (error) => console.error(error),
    });
  /** It compares two looks at a lock. Everything else is looked at anew, so that a test sees what it has changed. */
  const patient = answers();
  const answer = async (request: IncomingMessage): Promise<Reply> => {
    const { method = '', headers, url = '/' } = request;
    const { pathname, searchParams } = new URL(url, 'http://localhost');
    const name = pathname.replace(/^\/ops\/locks\//, '');
    const known = headers['if-none-match'];
    if (!name.startsWith('api/')) return patient.file(name, known);
    shop.passTo(state.now());
    const path = name.slice('api/'.length);
    const body = method === 'POST' ? ((await json(request)) as object) : undefined;
    const given = state.instead ?? (body && state.act(path, body));
    const reply = given
      ? replyOf(given)
      : await (path === 'lock' ? patient : answers()).view(path, searchParams, known);
    state.calls.push({ method, path, status: reply.status, headers, body });
    return reply;
  };
  const server = createServer((request, response) => {
    void answer(request).then(({ status, headers, body }) => response.writeHead(status, headers).end(body));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return Object.assign(state, {
    url: `http://127.0.0.1:${port}/ops/locks/`,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  });
}

function replyOf({ status, type = 'application/json', body }: Answer): Reply {
  return { status, headers: { 'content-type': type }, body: typeof body === 'string' ? body : JSON.stringify(body) };
}
