import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { eventually } from '../../../support/expect/eventually.js';
import type { LeaderVerbs, Reign } from './leader-process-main.js';
import { programOf } from '../../../support/process/program.js';

const main = programOf(new URL('leader-process-main.ts', import.meta.url));

/** An application in a process of its own, that stands as a candidate and can be stopped and killed. */
export class LeaderProcess {
  readonly child: ChildProcess;
  readonly #answers = new Map<number, unknown>();
  #asked = 0;

  constructor(url: string, leaseMs: number) {
    this.child = fork(main, [url, String(leaseMs)], {
      execArgv: [],
      env: { ...process.env, NODE_OPTIONS: '' },
    });
    this.child.on('message', ({ id, value }: { id: number; value: unknown }) => void this.#answers.set(id, value));
  }

  /** As it stands in the queue and in the lock. */
  get instanceId(): string {
    return `process-${this.child.pid}`;
  }

  async ready(): Promise<void> {
    await eventually(() => expect(this.#answers.has(0)).toBe(true), 30_000);
  }

  async ask<V extends keyof LeaderVerbs>(verb: V): Promise<Awaited<ReturnType<LeaderVerbs[V]>>> {
    const id = ++this.#asked;
    this.child.send({ id, verb });
    await eventually(() => expect(this.#answers.has(id)).toBe(true), 30_000);
    return this.#answers.get(id) as Awaited<ReturnType<LeaderVerbs[V]>>;
  }

  async untilLeads(withinMs?: number): Promise<void> {
    await eventually(async () => expect(await this.ask('isLeader')).toBe(true), withinMs);
  }

  /** SIGKILL leaves it no time for anything. Waits for its end. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    if (!this.isRunning) return;
    const exited = once(this.child, 'exit');
    this.child.kill(signal);
    await exited;
  }

  get isRunning(): boolean {
    return this.child.exitCode === null && this.child.signalCode === null;
  }
}

/** Starts candidates one after another, and kills the remaining ones after each test. */
export function useLeaders(url: () => string): (...leases: number[]) => Promise<LeaderProcess[]> {
  const running: LeaderProcess[] = [];
  afterEach(async () => {
    await Promise.all(running.splice(0).map((leader) => leader.end('SIGKILL')));
  });
  return async (...leases) => {
    const started = leases.map((leaseMs) => new LeaderProcess(url(), leaseMs));
    running.push(...started);
    await Promise.all(started.map((leader) => leader.ready()));
    return started;
  };
}

export type { Reign };
