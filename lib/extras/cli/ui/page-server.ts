import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ConsoleAnswers } from '../../console/answers/console-answers.js';
import type { Reply } from '../../console/answers/reply.js';

/** This machine alone reaches it. */
const HOST = '127.0.0.1';

/**
 * Serves the console, read-only, to browsers of this machine that know the path. A page elsewhere whose name leads here
 * is refused: its browser sends that name as `Host`.
 */
export class PageServer {
  readonly #server: Server;
  #port = 0;

  /** @param path the path of the page, with a slash at both ends */
  constructor(
    private readonly answers: ConsoleAnswers,
    private readonly path: string,
  ) {
    this.#server = createServer((request, response) => {
      // An error of one request must not end the process: any web page can make a browser send one.
      void this.#answer(request)
        .catch(() => refused(500, 'The console failed to answer.'))
        .then((reply) => send(response, reply));
    });
  }

  /** @param port 0 for any that is free. @returns the address of the page */
  async listen(port: number): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, HOST, resolve);
    });
    this.#port = (this.#server.address() as AddressInfo).port;
    return `http://${HOST}:${this.#port}${this.path}`;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer({ method, url = '', headers }: IncomingMessage): Promise<Reply> {
    if (!this.#isHere(headers.host)) return refused(421, 'This is not the address of the console.');
    if (!/^\/(?!\/)/.test(url)) return refused(400, 'This is not a path of the console.');
    // Joined, not resolved: against a base, a path such as `/\[` would be the name of a host.
    const { pathname, searchParams } = new URL(`http://${HOST}${url}`);
    if (!pathname.startsWith(this.path))
      return refused(404, 'Not found. Open the address that nestjs-redis-lock ui has printed.');
    if (method !== 'GET' && method !== 'HEAD') return refused(405, 'This console is read-only.');
    const name = pathname.slice(this.path.length);
    const known = headers['if-none-match'];
    if (name.startsWith('api/')) return this.answers.view(name.slice('api/'.length), searchParams, known);
    return this.answers.file(name, known);
  }

  #isHere(host: string | undefined): boolean {
    return host === `${HOST}:${this.#port}` || host === `localhost:${this.#port}`;
  }
}

function refused(status: number, body: string): Reply {
  return { status, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: `${body}\n` };
}

function send(response: ServerResponse, { status, headers, body }: Reply): void {
  response.writeHead(status, headers);
  // Node leaves the body out where the method is HEAD.
  response.end(body);
}
