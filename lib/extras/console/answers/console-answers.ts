import type { Clock } from '../../../kernel/util/clock.js';
import { VERSION } from '../../../features/fleet/core/roll/instance-report.js';
import { quote } from '../../../kernel/util/quoted.js';
import type { ConsoleAction, ConsoleBodies } from '../bodies.js';
import { PAGE } from '../page/page.generated.js';
import { ACTS } from './actions.js';
import { type Content, showBlockers, showInstances } from './fleet-views.js';
import { type HeaderOf, refuseForged } from './forgery.js';
import { showJob, showJobs } from './job-views.js';
import { showLeaders, showLock, showLocks } from './lock-views.js';
import { showNow } from './now-view.js';
import { Query } from './query.js';
import { doneReply, errorReply, fileReply, Refusal, type Reply, viewReply } from './reply.js';
import { type ConsoleSource, SnapshotCache } from './source.js';

/** What a console shows, and what it allows. */
interface ConsoleSettings {
  readonly title: string;
  /** At least one. */
  readonly sources: readonly ConsoleSource[];
  readonly actions: readonly ConsoleAction[];
  readonly allowedOrigins?: readonly string[] | undefined;
  /** Told of an error that is none of the locks. */
  readonly onError: (error: unknown) => void;
  /** @default the system clock */
  readonly clock?: Clock;
}

/** A request to do something. */
interface ActionRequest {
  readonly query: URLSearchParams;
  readonly header: HeaderOf;
  /** Reads the body. @throws Refusal where it is too large, or no JSON */
  readonly body: () => Promise<unknown>;
  /** Who asks. */
  readonly who: () => Promise<unknown>;
}

const MAX_BY = 100;
const FILES: Readonly<Record<string, readonly [type: string, content: string]>> = {
  '': ['text/html', PAGE.shell],
  'console.js': ['text/javascript', PAGE.script],
  'console.css': ['text/css', PAGE.style],
};

type View = Exclude<keyof ConsoleBodies, ConsoleAction>;
type Views = { readonly [K in View]: (looks: SnapshotCache, query: Query) => Promise<Content<K>> };

/** Answers the requests of the page, behind any server. It never throws. */
export class ConsoleAnswers {
  readonly #looks: ReadonlyMap<string, SnapshotCache>;
  readonly #views: Views = {
    session: (looks) => Promise.resolve(this.#session(looks)),
    now: showNow,
    locks: showLocks,
    lock: showLock,
    blockers: showBlockers,
    jobs: showJobs,
    job: showJob,
    leaders: showLeaders,
    instances: showInstances,
  };

  constructor(private readonly settings: ConsoleSettings) {
    this.#looks = new Map(
      settings.sources.map((source) => [source.service, new SnapshotCache(source, settings.clock)]),
    );
  }

  /** The page and its parts. @param name empty for the page */
  file(name: string, ifNoneMatch: string | undefined): Reply {
    const file = Object.hasOwn(FILES, name) ? FILES[name] : undefined;
    if (file) return fileReply(...file, ifNoneMatch);
    return errorReply(new Refusal('NOT_FOUND', `The console has no file ${quote(name)}.`), Date.now());
  }

  async view(name: string, query: URLSearchParams, ifNoneMatch: string | undefined): Promise<Reply> {
    let looks: SnapshotCache | undefined;
    try {
      looks = this.#looksAt(query);
      if (!Object.hasOwn(this.#views, name)) {
        throw new Refusal('NOT_FOUND', `The console has no view ${quote(name)}.`);
      }
      const answer = await this.#views[name as View](looks, new Query(query));
      return viewReply({ service: looks.source.service, ...answer }, looks.now(), ifNoneMatch);
    } catch (error) {
      return await this.#failed(error, looks);
    }
  }

  async act(name: string, { query, header, body, who }: ActionRequest): Promise<Reply> {
    const { actions, allowedOrigins } = this.settings;
    let looks: SnapshotCache | undefined;
    try {
      refuseForged(header, allowedOrigins);
      looks = this.#looksAt(query);
      if (!Object.hasOwn(ACTS, name)) {
        throw new Refusal('NOT_FOUND', `The console has no action ${quote(name)}.`);
      }
      const action = name as ConsoleAction;
      if (!actions.includes(action)) {
        throw new Refusal(
          'NOT_ALLOWED',
          `The console of this application does not allow ${action}. To allow it, add '${action}' to the option actions of RedisLockConsoleModule.forRoot.`,
        );
      }
      const answer = await ACTS[action](looks, await body(), nameOf(await who()));
      return doneReply({ service: looks.source.service, ...answer }, looks.now());
    } catch (error) {
      return await this.#failed(error, looks);
    } finally {
      looks?.forget();
    }
  }

  #looksAt(query: URLSearchParams): SnapshotCache {
    const service = query.get('service') ?? this.settings.sources[0]!.service;
    const looks = this.#looks.get(service);
    if (looks) return looks;
    throw new Refusal('UNKNOWN_SERVICE', `The console shows no lock service ${quote(service)}.`);
  }

  async #failed(error: unknown, looks: SnapshotCache | undefined): Promise<Reply> {
    const seen = looks ? await looks.refusalOf(error) : error;
    if (!(seen instanceof Refusal)) this.settings.onError(error);
    const refusal =
      seen instanceof Refusal ? seen : new Refusal('FAILED', 'The console failed. See the log of the application.');
    return errorReply(refusal, looks?.now() ?? Date.now());
  }

  #session(looks: SnapshotCache): Content<'session'> {
    const { title, sources, actions } = this.settings;
    const { leaseMs } = looks.source;
    const services = sources.map(({ service }) => service);
    return { at: looks.now(), version: VERSION, title, services, actions, leaseMs };
  }
}

/** @throws Refusal if the application does not name the caller */
function nameOf(who: unknown): string {
  const name = typeof who === 'string' ? who.trim() : '';
  if (name !== '') return name.slice(0, MAX_BY);
  throw new Refusal(
    'WHO_UNKNOWN',
    'The application did not name the user, so nothing was done. Check the option `who` of RedisLockConsoleModule.forRoot.',
  );
}
