// One PING over a bare socket: is a Redis serving on this port? (No client library: this runs before `npm ci` has.)
import { connect } from 'node:net';

const ATTEMPT_MS = 1_000;

/**
 * Returns true even if the server wants a password first: it serves. False while it loads its data, or nothing listens.
 */
export function answersPing(port) {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port }, () => socket.write('PING\r\n'));
    const end = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(ATTEMPT_MS, () => end(false));
    socket.on('data', (reply) => end(/^(\+PONG|-NOAUTH)/.test(reply.toString())));
    socket.on('error', () => end(false));
    socket.on('close', () => end(false));
  });
}
