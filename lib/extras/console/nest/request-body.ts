import type { IncomingMessage } from 'node:http';
import { Refusal } from '../answers/reply.js';

/** More than an action ever needs. */
const MAX_BYTES = 4_096;

/** A request of Express, or of Fastify, which has that of Node as `raw`. */
export type WithBody = Pick<IncomingMessage, 'headers'> & {
  readonly body?: unknown;
  readonly raw?: IncomingMessage;
};

/**
 * The body as JSON: what a parser of the application has made of it, or the request itself where none has read it.
 *
 * @throws Refusal where it is too large, or no JSON
 */
export async function readBody(request: WithBody): Promise<unknown> {
  checkSize(Number(request.headers['content-length'] ?? 0));
  const { body, raw = request as unknown as IncomingMessage } = request;
  if (typeof body === 'string' || Buffer.isBuffer(body)) return parse(body.toString());
  if (body === undefined || body === null) return parse(await textOf(raw));
  checkSize(Buffer.byteLength(JSON.stringify(body)));
  return body;
}

async function textOf(request: IncomingMessage): Promise<string> {
  if (request.readableEnded) return '';
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    checkSize((size += chunk.length));
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function parse(text: string): unknown {
  checkSize(Buffer.byteLength(text));
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal('BAD_REQUEST', 'The body is not JSON.');
  }
}

function checkSize(bytes: number): void {
  if (bytes > MAX_BYTES) throw new Refusal('TOO_LARGE', `The body has more than ${MAX_BYTES} bytes.`);
}
