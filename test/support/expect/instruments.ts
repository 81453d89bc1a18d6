import { tracingChannel } from 'node:diagnostics_channel';
import { createRequire } from 'node:module';
import { Redis } from 'ioredis';

const CHANNELS = ['command', 'batch', 'connect'].map((name) => `ioredis:${name}`);

/** The debug output of ioredis, which `DEBUG=ioredis:*` turns on. */
interface Debug {
  enable(namespaces: string): void;
  disable(): string;
  log: (...args: unknown[]) => void;
}
const require = createRequire(createRequire(import.meta.url).resolve('ioredis'));
const debug = require('debug') as Debug;

/** Observes every command of ioredis: subscribers of its channels, debug output, wrapped methods. */
export class Instruments {
  /** The names of the commands, in their order. */
  readonly names: string[] = [];
  /** The number of messages on each channel. */
  readonly messages: Record<string, number> = {};
  readonly #seen: { readonly what: string; readonly texts: ReadonlySet<string> }[] = [];
  readonly #sendCommand = Redis.prototype.sendCommand;
  readonly #log = debug.log;
  readonly #subscribers = CHANNELS.map((name) => {
    const note = (message: unknown): void => {
      this.messages[name] = (this.messages[name] ?? 0) + 1;
      this.see(`a message of ${name}`, message);
    };
    return { name, handlers: { start: note, end: note, asyncStart: note, asyncEnd: note, error: note } };
  });

  begin(): void {
    const { names } = this;
    const see = this.see.bind(this);
    const sendCommand = this.#sendCommand;
    for (const { name, handlers } of this.#subscribers) tracingChannel(name).subscribe(handlers);
    Redis.prototype.sendCommand = function (this: Redis, command, ...rest) {
      names.push(command.name);
      const { args, name } = command;
      see(`the command ${name}`, [command, args, command.getKeys()]);
      return sendCommand.call(this, command, ...rest);
    };
    debug.log = (...args) => see('debug output', args);
    debug.enable('ioredis:*');
  }

  see(what: string, value: unknown): void {
    this.#seen.push({ what, texts: textsIn(value) });
  }

  /** The places in which this was readable. */
  placesOf(secret: string): string[] {
    const has = ({ texts }: { readonly texts: ReadonlySet<string> }): boolean =>
      [...texts].some((text) => text.includes(secret));
    return this.#seen.filter(has).map(({ what }) => `${secret} in ${what}`);
  }

  /** The number of debug lines. */
  get debugLines(): number {
    return this.#seen.filter(({ what }) => what === 'debug output').length;
  }

  end(): void {
    debug.disable();
    debug.log = this.#log;
    Redis.prototype.sendCommand = this.#sendCommand;
    for (const { name, handlers } of this.#subscribers) tracingChannel(name).unsubscribe(handlers);
  }
}

/** Every text that code can reach from a value: names and values of all properties, including hidden ones. */
export function textsIn(value: unknown, texts = new Set<string>(), known = new Set<object>()): Set<string> {
  if (typeof value === 'string') texts.add(value);
  if (value === null || (typeof value !== 'object' && typeof value !== 'function') || known.has(value)) return texts;
  known.add(value);
  // An AsyncLocalStorage's data on a promise belongs to the running code, and is in no message.
  if (value instanceof Promise) return texts;
  if (value instanceof Uint8Array) return texts.add(Buffer.from(value).toString('latin1'));
  if (value instanceof Map || value instanceof Set) textsIn([...value], texts, known);
  for (let each: object | null = value; each && !isBuiltIn(each); each = Object.getPrototypeOf(each) as object | null) {
    for (const name of Reflect.ownKeys(each)) {
      texts.add(String(name));
      textsIn(read(value, name), texts, known);
    }
  }
  return texts;
}

function isBuiltIn(prototype: object): boolean {
  return [Object.prototype, Function.prototype, Array.prototype, Promise.prototype].includes(prototype as never);
}

function read(from: object, name: string | symbol): unknown {
  try {
    return (from as Record<string | symbol, unknown>)[name];
  } catch {
    return undefined;
  }
}
