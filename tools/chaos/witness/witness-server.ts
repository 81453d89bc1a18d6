import { createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { HistoryLog } from '../history/history-log.js';
import { Witness } from './registers.js';
import type { Question } from './witness-client.js';

/** Serves lock holders over a Unix socket, and logs its observations in a history file. Resolves when it listens. */
export function serveWitness(path: string, history: string): Promise<Server> {
  const log = new HistoryLog(history, 'witness');
  const witness = new Witness();

  function answer({ op, resource, call, token, read }: Question): number {
    if (op === 'enter') return witness.enter(resource, call);
    const written = witness.write(resource, call, token, read);
    log.say({ type: 'witnessed', resource, token, read, ...written });
    return written.accepted ? 1 : 0;
  }

  function serve(socket: Socket): void {
    const calls = new Set<string>();
    const lines = createInterface({ input: socket });
    lines.on('line', (line) => {
      const question = JSON.parse(line) as Question;
      if (question.op === 'enter') calls.add(question.call);
      else calls.delete(question.call);
      socket.write(`${JSON.stringify({ id: question.id, answer: answer(question) })}\n`);
    });
    // A process that was killed resets its connection.
    for (const end of [socket, lines]) end.on('error', () => undefined);
    socket.on('close', () => witness.leave(calls));
  }

  const server = createServer(serve);
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => resolve(server));
  });
}
