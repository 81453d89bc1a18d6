import { EventEmitter } from 'node:events';
import type { ExecutionContext } from '@nestjs/common';
import { onDisconnect } from '../../../lib/nest/handlers/client-disconnect.js';

/** A response, a socket or a WebSocket. */
class Wire extends EventEmitter {
  destroyed?: boolean;
  readyState?: number | string;
}

const graphql = (...args: unknown[]): ExecutionContext =>
  ({ getType: () => 'graphql', getArgs: () => args }) as unknown as ExecutionContext;
const ofField = (context: unknown): ExecutionContext => graphql({}, {}, context, {});

const places: [string, (wire: Wire) => unknown][] = [
  ['the request alone, on Express: the context that Nest makes for Apollo', (wire) => ({ req: { res: wire } })],
  ['request and response', (wire) => ({ req: { socket: new Wire() }, res: wire })],
  ['a request of Fastify alone', (wire) => ({ req: { raw: { socket: wire } } })],
  ['request and reply of Fastify: Mercurius', (wire) => ({ app: {}, req: {}, reply: { raw: wire, request: {} } })],
  ['a WebSocket of Mercurius', (wire) => ({ pubsub: {}, reply: { request: { raw: { socket: wire } } } })],
  ['the context of graphql-ws', (wire) => ({ extra: { socket: wire, request: { socket: new Wire() } } })],
  ['that context where Nest puts it', (wire) => ({ req: { extra: { socket: wire } } })],
  ['a request under its long name', (wire) => ({ request: { socket: wire } })],
];

describe('the client of a GraphQL request', () => {
  it.each(places)('is found by %s', (_, contextOf) => {
    const wire = new Wire();
    let left = 0;
    const stop = onDisconnect(ofField(contextOf(wire)), () => left++);
    onDisconnect(ofField(contextOf(wire)), () => left++);
    stop();
    expect(left).toBe(0);
    wire.emit('close');
    expect(left).toBe(1);
  });

  it('is found in the resolver of a reference, which has no arguments', () => {
    const wire = new Wire();
    let left = 0;
    onDisconnect(graphql({ __typename: 'Order' }, { res: wire }, {}), () => left++);
    wire.emit('close');
    expect(left).toBe(1);
  });

  it.each<[string, Partial<Wire>]>([
    ['a destroyed response', { destroyed: true }],
    ['a closing WebSocket', { readyState: 2 }],
    ['a closed one', { readyState: 3 }],
  ])('has left before: %s', (_, state) => {
    let left = 0;
    onDisconnect(ofField({ res: Object.assign(new Wire(), state) }), () => left++)();
    expect(left).toBe(1);
  });

  it.each<[string, Partial<Wire>]>([
    ['an open WebSocket', { readyState: 1 }],
    ['a socket, whose state is a word', { readyState: 'open' }],
  ])('is still there: %s', (_, state) => {
    let left = 0;
    onDisconnect(ofField({ res: Object.assign(new Wire(), state) }), () => left++)();
    expect(left).toBe(0);
  });

  it('has one listener, however many fields of its document wait', () => {
    const wire = new Wire();
    const stops = Array.from({ length: 50 }, () => onDisconnect(ofField({ res: wire }), () => {}));
    expect(wire.listenerCount('close')).toBe(1);
    stops.forEach((stop) => stop());
    onDisconnect(ofField({ res: wire }), () => {});
    expect(wire.listenerCount('close')).toBe(1);
  });

  const throwing = (): never => {
    throw new Error('not for you');
  };
  it.each<[string, unknown]>([
    ['none', undefined],
    ['null', null],
    ['text', 'user:7'],
    ['an empty one', {}],
    ['one of the application', { user: { id: 7 }, loaders: new Map() }],
    ['one whose getters throw', Object.defineProperty({}, 'req', { get: throwing })],
    ['a proxy that throws', new Proxy({}, { get: throwing })],
    ['a proxy that has everything', new Proxy({}, { get: (_, name) => ({ [name]: name }) })],
    ['a connection that throws', { res: { once: throwing } }],
    ['requests of another kind', { req: 'GET /', res: 7, reply: null, extra: [] }],
    ['no emitter', { res: { once: 'more' }, req: { socket: {} } }],
  ])('is not found by a foreign context, and nothing breaks: %s', (_, context) => {
    let left = 0;
    onDisconnect(ofField(context), () => left++)();
    onDisconnect(graphql(context), () => left++)();
    expect(left).toBe(0);
  });
});
