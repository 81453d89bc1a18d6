// Serves the page, with the answers of a shop: what the server of the console would send, without one.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { shop } from './shop.mjs';

/** As the console sends it. */
export const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
  "frame-ancestors 'none'; require-trusted-types-for 'script'";

const FILES = {
  '': ['shell', 'text/html'],
  'console.js': ['script', 'text/javascript'],
  'console.css': ['style', 'text/css'],
};

/**
 * @param {{ shell: string, script: string, style: string }} page
 * @param {Parameters<typeof shop>[0]} [world]
 */
export async function serveShop(page, world) {
  const state = {
    bodies: shop(world),
    /** Set: what each call of the API answers instead. @type {{ status: number, type?: string, body?: string, headers?: Record<string, string> } | undefined} */
    instead: undefined,
    /** Each call of the API. @type {{ method: string, path: string, query: URLSearchParams, status: number, headers: import('node:http').IncomingHttpHeaders, body: any }[]} */
    calls: [],
    /** Answers an action. @type {(action: string, body: any) => { status: number, body: object }} */
    act: (_action, body) => ({
      status: 200,
      body: { schemaVersion: 1, service: 'default', at: Date.now(), by: 'ann@garden.example', ...body },
    }),
    /** The clock of Redis. */
    now: () => Date.now(),
  };
  /**
   * @param {import('node:http').IncomingMessage} request
   * @param {import('node:http').ServerResponse} response
   */
  const answer = async (request, response) => {
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://localhost');
    const send = (status, type, body, headers = {}) => {
      response.writeHead(status, {
        'content-security-policy': CSP,
        'x-content-type-options': 'nosniff',
        'content-type': `${type}; charset=utf-8`,
        ...headers,
      });
      response.end(status === 304 ? undefined : body);
    };
    const path = pathname.replace(/^\/ops\/locks\//, '');
    const file = FILES[path];
    if (file) return send(200, file[1], page[file[0]]);
    if (!path.startsWith('api/')) return send(404, 'text/plain', 'Not found');
    let text = '';
    for await (const chunk of request) text += chunk;
    const call = {
      method: request.method ?? '',
      path: path.slice(4),
      query,
      status: 200,
      headers: request.headers,
      body: text ? JSON.parse(text) : undefined,
    };
    state.calls.push(call);
    const json = (status, body, headers) => {
      call.status = status;
      send(status, 'application/json', JSON.stringify(body), {
        'cache-control': 'no-store',
        'x-lock-console-now': String(state.now()),
        ...headers,
      });
    };
    if (state.instead) {
      const { status, type = 'application/json', body = '{}', headers } = state.instead;
      call.status = status;
      return send(status, type, body, headers);
    }
    if (request.method === 'POST') {
      const { status, body } = state.act(call.path, call.body);
      return json(status, body);
    }
    const body = state.bodies[call.path]?.(state.now(), query);
    if (!body) return json(404, { error: { code: 'NOT_FOUND', message: `There is no ${call.path}.` } });
    // As the server does: the passing of time alone is nothing new.
    const etag = `W/"${createHash('sha1')
      .update(JSON.stringify({ ...body, at: 0 }))
      .digest('hex')}"`;
    if (request.headers['if-none-match'] === etag) return json(304, undefined, { etag });
    json(200, body, { etag });
  };
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return Object.assign(state, {
    url: `http://127.0.0.1:${port}/ops/locks/`,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  });
}
