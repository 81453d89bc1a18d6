// The JSON bodies of the console, for the page and for your scripts.
import type { LockMode } from '../../kernel/api/lock-mode.js';
import type { Holder } from '../../kernel/api/holder.js';
import type { FleetInstance, FleetReport } from '../../features/fleet/core/roll/lock-fleet.js';
import type { LeadershipState } from '../views/leaders.js';
import type { InstanceRow } from '../views/instances.js';
import type { LockRow } from '../views/locks.js';
import type { Finding } from '../../features/fleet/core/findings/finding.js';
import type { Survey } from '../../features/fleet/core/findings/survey.js';
import type { JobInfo, JobRun } from '../../features/jobs/core/job-info.js';

/** Raised if a field changes its meaning, or is removed; not for a new field. */
export const CONSOLE_SCHEMA = 1;

/** The actions that an application may allow. Each name is the last part of the action's path: `POST api/release`. */
export const CONSOLE_ACTIONS = ['release', 'runJob', 'pauseJob', 'resumeJob'] as const;
export type ConsoleAction = (typeof CONSOLE_ACTIONS)[number];

/** Every body that is no error has these. All times (`at`, `since`, `until` …) are epoch milliseconds by the clock of Redis. */
interface Body {
  readonly schemaVersion: typeof CONSOLE_SCHEMA;
  readonly service: string;
  readonly at: number;
}

/** The body of an error, with a status of 400 or more. Guards, proxies and parsers of the application have bodies of their own. */
export interface ErrorBody {
  readonly error: {
    readonly code: ConsoleErrorCode;
    /** One or two sentences for a person. They name no secret and no address of Redis. */
    readonly message: string;
  };
}

/** The codes of errors, and their HTTP status. */
export const CONSOLE_ERRORS = {
  /** A query or a body that cannot be. */
  BAD_REQUEST: 400,
  /** The request may come from another site. */
  FORGED: 403,
  /** The application does not allow this action here. */
  NOT_ALLOWED: 403,
  /** `who` returned nobody. */
  WHO_UNKNOWN: 403,
  /** No such view, action or file. */
  NOT_FOUND: 404,
  /** The console shows no such lock service. */
  UNKNOWN_SERVICE: 404,
  UNKNOWN_JOB: 404,
  /** Nothing holds the resource now. */
  GONE: 404,
  /** It is held, by another lease than the one that was seen. */
  OUT_OF_DATE: 409,
  /** The job is not paused. */
  NOT_PAUSED: 409,
  /** No instance has taken the request to run the job; none will. */
  NOT_TAKEN: 409,
  TOO_LARGE: 413,
  /** The body is not declared as JSON. */
  NOT_JSON: 415,
  FAILED: 500,
  /** This store cannot be asked for it, as a quorum has no roll calls and no records of jobs. */
  NOT_SUPPORTED: 501,
  /** The application shuts down. */
  SHUTTING_DOWN: 503,
  /** Redis cannot be reached, does not answer, or refuses. The message has the cause, and the remedy. */
  REDIS_UNAVAILABLE: 503,
} as const;
export type ConsoleErrorCode = keyof typeof CONSOLE_ERRORS;

/** The part of the fleet that has answered. */
export interface Completeness extends Pick<FleetReport, 'completeness' | 'asked' | 'unreadable'> {
  /** How many instances have answered. */
  readonly heard: number;
  /** Connected, and have not answered: at most 20 of them, where their names are known, and how many there are. */
  readonly silent: readonly string[];
  readonly silentCount: number;
  /** How many leases and waiting calls the instances did not list, because an answer has 4 kB at most. */
  readonly unlistedHeld: number;
  readonly unlistedWaiting: number;
}

/** A body that is made of a roll call. */
interface RollBody extends Body {
  readonly fleet: Completeness;
}

/** A list that the server has filtered, sorted and cut. */
interface ListBody<Row> {
  readonly rows: readonly Row[];
  /** Number of rows that match the filter, listed in `rows` or not. */
  readonly total: number;
}

/** The answer of each view and of each action. */
export interface ConsoleBodies {
  /** `GET api/session` */
  readonly session: Body & {
    /** The version of this package. */
    readonly version: string;
    /** Of the application, for the head of the page. */
    readonly title: string;
    /** The applications to choose from, if there are several. */
    readonly services: readonly string[];
    /** What the application allows. */
    readonly actions: readonly ConsoleAction[];
    /** The default `leaseMs`; `null` if unknown. */
    readonly leaseMs: number | null;
  };
  /** `GET api/now` */
  readonly now: Body & {
    /** `null` if Redis refuses the question. */
    readonly fleet: Completeness | null;
    /** What is wrong, the worst first, as in `locks.fleet()`. */
    readonly findings: readonly Finding[];
    /** `notTried`: the user of the command line may only look. */
    readonly redis: Pick<Survey['health'], 'status' | 'topology' | 'roundTripMs' | 'problems'>;
    readonly held: number;
    readonly waiting: number;
    /** When the longest-waiting listed call began to wait; `null` if none waits. */
    readonly oldestWaitSince: number | null;
    /** In the last minute, of all instances; `null` while they have only begun to count. `forMs` is their shortest time. */
    readonly lastMinute: FleetInstance['lastMinute'];
    /** The ten locks in the worst trouble, and how many there are. */
    readonly locks: readonly LockRow[];
    readonly lockCount: number;
  };
  /** `GET api/locks?filter=&group=&state=&sort=&limit=` */
  readonly locks: RollBody &
    ListBody<LockRow> & {
      /** The groups that the listed locks have, for the choice: at most 200. */
      readonly groups: readonly string[];
    };
  /** `GET api/lock?resource=` of one resource, which may be free. */
  readonly lock: RollBody & {
    readonly resource: string;
    readonly mode: LockMode | 'free';
    /** See `LOCK_CAUSES` of `locks.explain()`. */
    readonly cause: string;
    /** The sentences of `locks.explain()`. */
    readonly sentences: readonly string[];
    /** At most 100, in the order of their tokens. `leaseMs` is 0 if it is not known. */
    readonly holders: readonly (Omit<LockRow, 'waiters' | 'oldestWaitSince'> &
      Pick<Holder, 'instanceId' | 'fencingToken' | 'leaseMs'> & {
        readonly since: number;
        /** The conclusion from two looks, some seconds apart. Not set before the second look. */
        readonly conclusion?: string;
      })[];
    readonly holderCount: number;
    /**
     * The calls that wait, as their processes list them, the oldest first; then the processes in the queue that have not
     * answered, of which only the label is known. At most 100.
     */
    readonly calls: readonly (Pick<LockRow, 'key' | 'group' | 'callSite' | 'label' | 'since'> &
      Pick<Holder, 'instanceId' | 'mode'> & {
        /** Names of resources that its caller holds. */
        readonly holds?: readonly string[];
      })[];
    readonly callCount: number;
    /** Of a semaphore. */
    readonly permits?: { readonly total: number; readonly available: number };
  };
  /** `GET api/blockers`. Groups have their names here: `everything else` for calls without one. */
  readonly blockers: RollBody & {
    /** Who has waited for whom, in the last ten minutes at most, while it was counted: at most 50, the longest waits first. */
    readonly cells: FleetInstance['blockers'];
    readonly cellCount: number;
    /** Who waits now. `waitedMs` is the longest wait of them. */
    readonly now: FleetInstance['blockers'];
    /** Whether the instances count. They begin when they are first asked, and stop a minute after the last time. */
    readonly isCounting: boolean;
    /** Calls that wait for each other in a cycle. */
    readonly deadlocks: readonly {
      /** One for each side. */
      readonly sentences: readonly string[];
      /** In their order: each waits for what the next one holds. */
      readonly resources: readonly string[];
    }[];
  };
  /** `GET api/jobs?filter=&state=&sort=&limit=` */
  readonly jobs: Body &
    ListBody<
      ConsoleBodies['job']['job'] & {
        /** The newest 14 entries, the newest first. */
        readonly history: readonly JobRun[];
      }
    >;
  /** `GET api/job?name=` */
  readonly job: Body & {
    readonly job: Omit<JobInfo, 'isHere' | 'instances'> & { readonly state: 'waits' | 'running' | 'paused' };
    /** The instances that have it, the last seen first: at most 20. */
    readonly instances: JobInfo['instances'];
    /** The newest first: at most 100. `errorMessage` only of jobs with `historyMessages`: Redis has no other. */
    readonly runs: readonly JobRun[];
  };
  /** `GET api/leaders` */
  readonly leaders: RollBody &
    ListBody<Omit<LeadershipState, 'leadsForMs' | 'ttlMs'> & Pick<LockRow, 'since' | 'until'>>;
  /** `GET api/instances?filter=&state=&sort=&limit=` */
  readonly instances: RollBody & ListBody<InstanceRow>;
  /** To `POST api/release` */
  readonly release: Body & {
    readonly resource: string;
    readonly fencingToken: number;
    /** Which process had it. */
    readonly holder: string;
    readonly by: string;
    readonly reason: string;
    /** When the holder finds out, at its next renewal. */
    readonly heardAt: number;
  };
  /** To `POST api/runJob` */
  readonly runJob: Body & {
    readonly job: string;
    /** Which instance runs it. */
    readonly instanceId: string;
    /** `taken`: it runs now. The others: it has ended already. */
    readonly state: 'taken' | 'ok' | 'error' | 'refused';
    /** Why it was refused, or the name of the error. */
    readonly message?: string;
    readonly by: string;
  };
  /** To `POST api/pauseJob` */
  readonly pauseJob: Body & {
    readonly job: string;
    readonly pause: NonNullable<JobInfo['pause']>;
    /** The pause that stood before. */
    readonly before?: NonNullable<JobInfo['pause']>;
  };
  /** To `POST api/resumeJob` */
  readonly resumeJob: Body & {
    readonly job: string;
    /** The pause that stood. */
    readonly before: NonNullable<JobInfo['pause']>;
  };
}
