/** The data that the lock protects. */
interface Registers {
  /** The largest token that was accepted: a smaller one is refused. */
  fence: number;
  /** Written by reading it, adding 1 and writing it back, with no protection but the lock: shows what fencing is for. */
  counter: number;
  readonly inside: Set<string>;
}

/** The result of a write. */
export interface Written {
  readonly accepted: boolean;
  /** The unfenced counter when it was overwritten. Another value than the writer had read: an update is lost. */
  readonly found: number;
  /** The number of processes that believed to hold the lock, including the writer. */
  readonly inside: number;
}

/** The registers of all resources. */
export class Witness {
  readonly #registers = new Map<string, Registers>();

  /** Gives the unfenced counter. */
  enter(resource: string, call: string): number {
    const registers = this.#of(resource);
    registers.inside.add(call);
    return registers.counter;
  }

  write(resource: string, call: string, token: number, read: number): Written {
    const registers = this.#of(resource);
    const written = { accepted: token >= registers.fence, found: registers.counter, inside: registers.inside.size };
    if (written.accepted) registers.fence = token;
    registers.counter = read + 1;
    registers.inside.delete(call);
    return written;
  }

  /** Forgets callers that will never write, because their process has ended. */
  leave(calls: Iterable<string>): void {
    for (const call of calls) for (const { inside } of this.#registers.values()) inside.delete(call);
  }

  #of(resource: string): Registers {
    let registers = this.#registers.get(resource);
    if (!registers) this.#registers.set(resource, (registers = { fence: 0, counter: 0, inside: new Set() }));
    return registers;
  }
}
