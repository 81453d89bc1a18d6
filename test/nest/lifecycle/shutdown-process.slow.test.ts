import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { eventually } from '../../support/expect/eventually.js';
import { useAdmin } from '../../support/redis/lock-instances.js';
import { programOf } from '../../support/process/program.js';
import { useRedis } from '../../support/redis/redis-server.js';

const main = programOf(new URL('shutdown-process-main.ts', import.meta.url));

describe('a process with the lock module', () => {
  const redis = useRedis();
  const admin = useAdmin(() => redis().url);
  let child: ChildProcess;
  let output = '';

  const start = (how: string): void => {
    output = '';
    child = spawn(process.execPath, [main, redis().url, how], {
      env: { ...process.env, NODE_OPTIONS: '' },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (text: Buffer) => (output += String(text)));
  };
  const told = (...texts: string[]): Promise<void> =>
    eventually(() => texts.forEach((text) => expect(output).toContain(text)));
  const exited = async (): Promise<unknown> => {
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    return child.exitCode ?? child.signalCode;
  };
  const ttl = (): Promise<number> => admin().pttl('lock:{job}');
  afterEach(() => void child.kill('SIGKILL'));

  it('exits by itself after app.close(): nothing of the library keeps it alive', async () => {
    start('closes');
    await told('closed');
    expect(await exited()).toBe(0);
    expect(output).toBe('closed\n');
  });

  it('gets an answer for what it asks of a lease after app.close(), though no timer keeps it alive', async () => {
    start('releases');
    expect(await exited()).toBe(0);
    const closed = 'this lock service is closed, because its application has shut down';
    expect(output).toContain(`Redis could not release "a": ${closed}\n`);
    expect(output).toContain(
      `Redis could not release "a": ${closed}. The release is not retried: the lock expires with its lease.`,
    );
    expect(output).toContain(`Redis could not inspect "a": ${closed}\n`);
  });

  it('ends at SIGTERM', async () => {
    start('idle');
    await told('ready');
    child.kill('SIGTERM');
    expect(await exited()).toBe('SIGTERM'); // Nest raises the signal again when all is closed
    expect(output).toBe('ready\n');
  });

  it('lets a job that is running end at SIGTERM, and its lock is gone from Redis', async () => {
    start('finishes');
    await told('job began', 'ready');
    expect(await ttl()).toBeGreaterThan(0);
    child.kill('SIGTERM');
    expect(await exited()).toBe('SIGTERM');
    expect(output).toContain('job ended');
    expect(await ttl()).toBe(-2);
  });

  it('does not wait for a job that hangs longer than drainMs; its lock expires within a lease', async () => {
    start('hangs');
    await told('job began', 'ready');
    child.kill('SIGTERM');
    expect(await exited()).toBe('SIGTERM');
    expect(output).not.toContain('job ended');
    expect(output).toContain('The lease of "job" is no longer held: the application is shutting down');
    expect(await ttl()).toBeGreaterThan(0);
    await eventually(async () => expect(await ttl()).toBe(-2));
  });
});
