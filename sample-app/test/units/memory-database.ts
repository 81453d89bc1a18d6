import { type FencedCommand, StaleFencingTokenError } from 'nestjs-redis-lock/fence';
import type { Database } from '../../src/database/database.js';

type Cell = string | string[];

/** The shop's database in the memory of a test: what is read may be old when it is written, as in the real one. */
export class MemoryDatabase implements Pick<Database, keyof Database> {
  readonly #cells = new Map<string, Cell>();
  readonly #tokens = new Map<string, number>();

  async number(key: string): Promise<number | undefined> {
    const text = this.#cells.get(key);
    return text === undefined ? undefined : Number(text);
  }

  async setNumber(key: string, value: number): Promise<void> {
    this.#cells.set(key, String(value));
  }

  async json<T>(key: string): Promise<T | undefined> {
    const text = this.#cells.get(key) as string | undefined;
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  async setJson(key: string, value: object): Promise<void> {
    this.#cells.set(key, JSON.stringify(value));
  }

  async remove(...keys: string[]): Promise<void> {
    for (const key of keys) this.#cells.delete(key);
  }

  async append(list: string, row: object): Promise<void> {
    this.#cells.set(list, [...this.#list(list), JSON.stringify(row)]);
  }

  async rows<T>(list: string): Promise<T[]> {
    return this.#list(list).map((row) => JSON.parse(row) as T);
  }

  async removeRow(list: string, row: object): Promise<void> {
    const rows = this.#list(list);
    const index = rows.indexOf(JSON.stringify(row));
    this.#cells.set(
      list,
      rows.filter((_, i) => i !== index),
    );
  }

  async fenced(key: string, token: number, commands: FencedCommand[]): Promise<void> {
    const seen = this.#tokens.get(key) ?? 0;
    if (token < seen) throw new StaleFencingTokenError(key, token, seen);
    this.#tokens.set(key, token);
    for (const [command, ...args] of commands) this.#run(command, args.map(String));
  }

  async refuseOlder(key: string, token: number): Promise<void> {
    this.#tokens.set(key, Math.max(token, this.#tokens.get(key) ?? 0));
  }

  async ping(): Promise<void> {}

  onApplicationShutdown(): void {}

  #list(key: string): string[] {
    return (this.#cells.get(key) as string[] | undefined) ?? [];
  }

  #run(command: string, [key, value]: string[]): void {
    if (command === 'SET') this.#cells.set(key!, value!);
    else if (command === 'DEL') this.#cells.delete(key!);
    else if (command === 'RPUSH') this.#cells.set(key!, [...this.#list(key!), value!]);
    else throw new Error(`MemoryDatabase does not know ${command}`);
  }
}
