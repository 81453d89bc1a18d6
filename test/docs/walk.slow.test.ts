import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { useRedis } from '../support/redis/redis-server.js';

const root = new URL('../../', import.meta.url);

/** The files that a newcomer has to open to follow one call. */
const MAX_FILES = 34;
/** Beside those, what a newcomer has to open to follow one tick of a job. */
const MAX_TICK = { files: 12, rooms: 4 };

describe('the way of one call of a method with @DistributedLock, on a free lock', () => {
  const redis = useRedis();
  let files: string[];
  let ofTick: string[];
  let page: string;

  beforeAll(async () => {
    const env = { ...process.env, NODE_OPTIONS: '', REDIS_URL: redis().url };
    const program = fileURLToPath(new URL('tools/walk/walk.mjs', root));
    const { stdout } = await promisify(execFile)(process.execPath, [program], { env });
    const { definition, call, tick } = JSON.parse(stdout) as Record<'definition' | 'call' | 'tick', string[]>;
    files = [...new Set([...definition, ...call])].sort();
    ofTick = tick.filter((file) => !files.includes(file));
    page = await readFile(new URL('docs/internals/architecture.md', root), 'utf8');
  });

  it('passes through the stations that the page for contributors shows', () => {
    const table = page.slice(page.indexOf('## One call'), page.indexOf('## A handover'));
    const shown = [...table.matchAll(/`(?:lib\/)?((?:kernel|nest|redis)\/[\w./-]+)\.ts`/g)].map(([, file]) => file!);
    expect(shown.length).toBeGreaterThan(10);
    for (const file of shown) {
      expect(existsSync(new URL(`lib/${file}.ts`, root))).toBe(true);
      expect(files).toContain(file);
    }
  });

  it(`runs through at most ${MAX_FILES} files, about as many as the page says`, () => {
    expect(files.length).toBeLessThanOrEqual(MAX_FILES);
    const said = Number(/runs through about (\d+)\s+files of `lib\/`/.exec(page)?.[1]);
    expect(Math.abs(files.length - said)).toBeLessThanOrEqual(2);
  });

  it(`and a tick of a @SingletonCron runs through at most ${MAX_TICK.files} more, in ${MAX_TICK.rooms} rooms`, () => {
    expect(ofTick).toContain('features/jobs/core/singleton-runs');
    expect(ofTick.length).toBeLessThanOrEqual(MAX_TICK.files);
    expect(new Set(ofTick.map((file) => posix.dirname(file))).size).toBeLessThanOrEqual(MAX_TICK.rooms);
  });
});
