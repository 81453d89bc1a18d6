import { once } from 'node:events';
import type { io as connect } from 'socket.io-client';
import type { WebSocket as Socket } from 'ws';
import { eventually } from '../../support/expect/eventually.js';

/** A client of a gateway, on either platform. */
export interface GatewayClient {
  /** The gateway's messages, in order, except acknowledgements. */
  readonly heard: { event: string; data: unknown }[];
  send(event: string, data?: unknown): void;
  /** Sends a message, and resolves to the next message of the gateway. */
  ask(event: string, data?: unknown): Promise<unknown>;
  /** Sends a message that asks for an acknowledgement. Socket.IO alone has them. */
  askForAck?(event: string, data?: unknown): Promise<unknown>;
  leave(): void;
}

/** @param io of the stack that asks */
export async function connectSocketIo(io: typeof connect, url: string): Promise<GatewayClient> {
  const socket = io(url, { transports: ['websocket'], reconnection: false, forceNew: true });
  const heard: GatewayClient['heard'] = [];
  socket.onAny((event: string, data: unknown) => heard.push({ event, data }));
  await new Promise<void>((resolve, reject) => socket.on('connect', resolve).on('connect_error', reject));
  const send = (event: string, data?: unknown): void => void socket.emit(event, data);
  return {
    heard,
    send,
    ask: (event, data) => nextOf(heard, () => send(event, data)),
    askForAck: (event, data) => socket.emitWithAck(event, data) as Promise<unknown>,
    leave: () => void socket.disconnect(),
  };
}

/** @param WebSocket of the stack that asks */
export async function connectWs(WebSocket: typeof Socket, url: string): Promise<GatewayClient> {
  const socket = new WebSocket(url.replace('http', 'ws'));
  const heard: GatewayClient['heard'] = [];
  socket.on('message', (text: Buffer) => heard.push(JSON.parse(text.toString()) as GatewayClient['heard'][number]));
  await once(socket, 'open');
  const send = (event: string, data?: unknown): void => socket.send(JSON.stringify({ event, data }));
  return {
    heard,
    send,
    ask: (event, data) => nextOf(heard, () => send(event, data)),
    leave: () => socket.terminate(),
  };
}

async function nextOf(heard: GatewayClient['heard'], send: () => void): Promise<unknown> {
  const before = heard.length;
  send();
  await eventually(() => {
    if (heard.length === before) throw new Error('The gateway has not answered');
  });
  return heard[before];
}
