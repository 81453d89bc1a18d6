import type { LockTelemetry, LockTelemetrySource } from '../../core/events/telemetry.js';
import type { CallTrace, TracedLock } from '../../core/events/lock-tracer.js';
import { type LockLog, LOGGED } from './lock-log.js';

/** Notes in the log of a fleet what one lock service does. */
export class LogTelemetry implements LockTelemetry {
  constructor(
    private readonly log: LockLog,
    private readonly instance: string,
  ) {}

  start(source: LockTelemetrySource): () => void {
    const { log, instance } = this;
    const stops = [
      source.observe((event) => log.note(instance, event), LOGGED),
      source.trace({
        acquire: (lock) => this.#follow(lock),
        adopt: (lock) => this.#follow(lock),
        tick: () => undefined,
      }),
    ];
    return () => stops.forEach((stop) => stop());
  }

  #follow({ resource }: TracedLock): CallTrace | undefined {
    const from = callerOf(new Error().stack);
    if (from === undefined) return undefined;
    return {
      traceparent: undefined,
      run: (ask) => ask(),
      waits: () => {},
      granted: ({ fencingToken }) => {
        this.log.cameFrom(this.instance, resource, fencingToken, from);
        return undefined;
      },
      failed: () => {},
    };
  }
}

/** Where the package is, by this file: the folder of the sources, or those of both formats. */
const OURS = ownFolders();

function ownFolders(): string[] {
  const own = /^\s+at .*?(?:file:\/\/)?(\/[^\s()]*[/\\])(testing[/\\]fleet|dist[/\\](?:esm|cjs))[/\\]/m;
  const [, folder, below] = new Error().stack?.match(own) ?? [];
  if (folder === undefined || below === undefined) return [];
  return below.startsWith('testing') ? [folder] : [`${folder}dist/esm/`, `${folder}dist/cjs/`];
}

/** The first line of a stack that is not of this package, of Node or of Nest. */
function callerOf(stack: unknown): string | undefined {
  if (typeof stack !== 'string') return undefined;
  for (const [, line] of stack.matchAll(/^\s+at (.+)$/gm)) {
    if (OURS.some((folder) => line!.includes(folder))) continue;
    if (/node:|[/\\]node_modules[/\\](?:@nestjs|rxjs|nestjs-redis-lock)[/\\]|<anonymous>/.test(line!)) continue;
    return line!.replace(/^async /, '');
  }
  return undefined;
}
