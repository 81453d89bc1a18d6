import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** A request to the witness: to enter, or to write. */
export interface Question {
  readonly id: number;
  readonly op: 'enter' | 'write';
  readonly resource: string;
  readonly call: string;
  readonly token: number;
  readonly read: number;
}

/** Our side of the connection to the witness. */
export class WitnessClient {
  readonly #waiting = new Map<number, (answer: number) => void>();
  #asked = 0;

  private constructor(private readonly socket: Socket) {
    createInterface({ input: socket }).on('line', (line) => {
      const { id, answer } = JSON.parse(line) as { id: number; answer: number };
      this.#waiting.get(id)?.(answer);
      this.#waiting.delete(id);
    });
  }

  static async connect(path: string): Promise<WitnessClient> {
    const socket = connect(path);
    await once(socket, 'connect');
    return new WitnessClient(socket);
  }

  /** Comes in, and reads the unfenced counter. */
  enter(resource: string, call: string): Promise<number> {
    return this.#ask({ op: 'enter', resource, call, token: 0, read: 0 });
  }

  /** Writes both registers, and goes out. Gives whether the fenced one took it. */
  async write(resource: string, call: string, token: number, read: number): Promise<boolean> {
    return (await this.#ask({ op: 'write', resource, call, token, read })) === 1;
  }

  end(): void {
    this.socket.end();
  }

  #ask(question: Omit<Question, 'id'>): Promise<number> {
    const id = ++this.#asked;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.socket.write(`${JSON.stringify({ id, ...question })}\n`);
    });
  }
}
