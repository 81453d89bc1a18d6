import { createServer, type IncomingMessage, request as send, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { map, type Observable } from 'rxjs';

/** What an application does with all that its handlers return. */
export class Wrapping implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map((data: unknown) => ({ data, wrapped: true })));
  }
}

/** Sets what helmet sets by default. */
export function likeHelmet(_request: IncomingMessage, response: ServerResponse, next: () => void): void {
  response.setHeader(
    'Content-Security-Policy',
    "default-src 'self';base-uri 'self';font-src 'self' https: data:;form-action 'self';frame-ancestors 'self';img-src 'self' data:;object-src 'none';script-src 'self';script-src-attr 'none';style-src 'self' https: 'unsafe-inline';upgrade-insecure-requests",
  );
  response.setHeader('Cross-Origin-Opener-Policy', 'same-origin');
  response.setHeader('Cross-Origin-Resource-Policy', 'same-origin');
  response.setHeader('Referrer-Policy', 'strict-origin-when-cross-origin');
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.setHeader('X-Frame-Options', 'SAMEORIGIN');
  next();
}

/** A proxy in front of an application: what comes for `/edge` goes there, with that prefix or without it. */
export function useProxies(): (target: string, prefix: 'strips' | 'keeps') => Promise<string> {
  const running: ReturnType<typeof createServer>[] = [];
  afterEach(async () => {
    for (const server of running.splice(0)) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
  });
  return async (target, prefix) => {
    const server = createServer((incoming, outgoing) => {
      const { url = '', method, headers } = incoming;
      if (!url.startsWith('/edge')) return void outgoing.writeHead(502).end();
      const path = prefix === 'strips' ? url.slice('/edge'.length) : url;
      const { hostname, port } = new URL(target);
      const passed = send({ hostname, port, path, method, headers: { ...headers, host: 'inner.test' } }, (answer) => {
        outgoing.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(outgoing);
      });
      passed.on('error', () => outgoing.destroy());
      incoming.pipe(passed);
    });
    running.push(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/edge`;
  };
}
