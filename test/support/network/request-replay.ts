import { connect } from 'node:net';
import { Marker } from './redis-requests.js';

/** A request, and what its connection had sent before to be let in. */
export interface SentRequest {
  handshake: Buffer[];
  request: Buffer;
}

/** Sends the request again on a connection of its own, and drops the reply. Gives whether Redis has executed it. */
export function sendAgain(port: number, { handshake, request }: SentRequest): Promise<boolean> {
  const marker = new Marker();
  const socket = connect({ host: '127.0.0.1', port });
  socket.write(Buffer.concat([...handshake, request, marker.request]));
  return new Promise((resolve) => {
    let replies: Buffer = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      replies = Buffer.concat([replies, chunk]);
      if (marker.split(replies) === undefined) return;
      resolve(true);
      socket.destroy();
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(false));
  });
}
