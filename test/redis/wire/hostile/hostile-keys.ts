import type { Redis } from 'ioredis';
import * as SCRIPTS from '../../../../lib/redis/script/scripts.js';
import type { SeededRandom } from '../../../support/world/seeded-random.js';
import { FIELDS, OWNERS, PLACES, SCORES, SOON, TEXTS } from './hostile-texts.js';

const LOCK = 'lock:{r}';
const QUEUE = `${LOCK}:waiters`;
const FENCE = 'lock:fence';
const CLAIM = `${LOCK}:tick:1`;
const LAST = `${LOCK}:last-tick`;
const RUNS = `${LOCK}:runs`;
const RECORD = `${LOCK}:job`;
const PAUSE = `${LOCK}:paused`;
const REQUEST = `${LOCK}:request:x`;
const INSTANCES = `${LOCK}:instances`;
const JOBS = 'lock:jobs';
const DONE = `${LOCK}:done:v1`;
const RESULT = `${LOCK}:result`;
const ROLL = 'lock:roll';
const ANSWERS = `${ROLL}:nonce`;
/** All of them; the queue, which has the most parts, twice. */
const KEYS = [
  LOCK,
  QUEUE,
  QUEUE,
  FENCE,
  CLAIM,
  LAST,
  RUNS,
  RECORD,
  PAUSE,
  REQUEST,
  INSTANCES,
  JOBS,
  DONE,
  RESULT,
  ROLL,
  ANSWERS,
];
export const QUEUE_AND_FENCE = [QUEUE, QUEUE, FENCE];

const MODES = ['exclusive', 'reentrant', 'read', 'write', 'semaphore:1:3:0', 'semaphore:2:3:1'] as const;

export type ScriptName = keyof typeof SCRIPTS;

export const SCRIPT_NAMES = Object.keys(SCRIPTS) as ScriptName[];
/** By its name. */
const TEXT_OF = new Map(Object.entries(SCRIPTS).map(([name, { lua }]) => [name, lua]));

export interface Call {
  readonly keys: string[];
  readonly args: (string | number)[];
}

/** Writes garbage into every kind of key that the scripts use, and runs every script. */
export class HostileKeys {
  /** The commands sent, shortened. */
  readonly trail: string[] = [];

  constructor(
    private readonly admin: Redis,
    private readonly random: SeededRandom,
    private readonly modes: readonly string[] = MODES,
  ) {}

  any<T>(things: readonly T[]): T {
    return things[Math.floor(this.random.fraction() * things.length)]!;
  }

  /** Simulates a program that changes or replaces one of these keys. */
  async write(keys: readonly string[] = KEYS): Promise<void> {
    const key = this.any(keys);
    const isInto = this.#chance(0.5);
    if (!isInto) await this.#send('del', key);
    const [command, ...args] = this.#garbage(key);
    // Redis refuses what does not fit the type of the key.
    await this.#send(command!, key, ...args).catch(() => undefined);
  }

  #garbage(key: string): string[] {
    const few = 1 + Math.floor(this.random.fraction() * 4);
    const text = () => this.any(TEXTS);
    const scored = () => [this.any(SCORES), this.#chance(0.9) ? this.any(PLACES) : text()];
    const places = ['zadd', ...Array.from({ length: few * 2 }, scored).flat()];
    if (key === QUEUE && this.#chance(0.8)) return places;
    const shared = [
      'mode',
      this.any(['read', 'semaphore', 'write', 'mine', '']),
      'soonest',
      this.any([text(), SOON, '1']),
    ];
    const counted = ['total', this.any([text(), '3']), 'used', this.any([text(), '2']), this.any(OWNERS), text()];
    return this.any([
      places,
      ['hset', ...Array.from({ length: few * 2 }, () => [this.any(FIELDS), text()]).flat()],
      ['hset', ...shared, ...counted],
      ['set', text()],
      ['rpush', text()],
      ['sadd', text()],
    ]);
  }

  #chance(part: number): boolean {
    return this.random.fraction() < part;
  }

  #send(command: string, ...args: (string | number)[]): Promise<unknown> {
    this.trail.push([command, ...args].map((word) => String(word).slice(0, 60)).join(' | '));
    return this.admin.call(command, ...args);
  }

  run(name: ScriptName, { keys, args }: Call): Promise<unknown> {
    this.trail.push([name, ...args].join(' | '));
    return this.admin.eval(TEXT_OF.get(name)!, keys.length, ...keys, ...args);
  }

  verify(owner: string): Promise<unknown> {
    return this.admin.eval(SCRIPTS.VERIFY.lua, 1, LOCK, owner);
  }

  /** Arguments that the library may send. */
  argumentsOf(name: ScriptName, lease: number = this.any([50, 10_000])): Call {
    const [keys, args] = this.#argumentsOf(name, lease);
    return { keys, args };
  }

  #argumentsOf(name: ScriptName, lease: number): [keys: string[], args: (string | number)[]] {
    const owner = this.any(OWNERS);
    const other = this.any(OWNERS);
    const lock = [LOCK, QUEUE, FENCE];
    const label = this.any([[], [], ['{"group":"g"}']]);
    const mode = this.any(this.modes);
    switch (name) {
      case 'ACQUIRE':
        return [lock, [owner, lease, this.any(['', 5]), this.any([mode, '']), this.any([1, 100, '']), ...label]];
      case 'KEEP':
        return [
          [LOCK, QUEUE, LOCK, QUEUE],
          [5, owner, lease, this.any([1, 2]), other, lease, this.any([1, 2])],
        ];
      case 'ROTATE':
        return [lock, [owner, other, lease, 5, mode, this.any([100, '']), ...label]];
      case 'RELEASE':
        return [lock, [this.any([owner, owner, ''])]];
      case 'RETAIN':
        return [lock, [owner, this.any(['', 500]), 1_000]];
      case 'DOWNGRADE':
        return [lock, [owner, lease]];
      case 'LOWER_PERMITS':
        return [lock, [owner, 1]];
      case 'RESIZE':
        return [lock, [this.any([1, 2, 5])]];
      case 'FORCE_RELEASE':
        return [lock, [this.any([32, 64, 2 ** 50])]];
      case 'WATCH':
        return [lock, ['w/1/secret', 7, this.any([0, 1_000])]];
      case 'RENEW':
        return [
          [LOCK, LOCK],
          [owner, lease, other, lease],
        ];
      case 'RENEW_EXACTLY':
        return [
          [LOCK, QUEUE],
          [owner, lease],
        ];
      case 'SET_DEPTH':
        return [[LOCK], [owner, 2, lease]];
      case 'LABEL':
        return [[LOCK], [owner, this.any(['', '{"group":"g"}'])]];
      case 'VERIFY':
        return [[LOCK], [owner]];
      case 'RAISE_TOKEN':
        return [
          [LOCK, FENCE],
          [owner, 2 ** 50],
        ];
      case 'INSPECT':
        return [[LOCK, QUEUE], []];
      case 'TRY_WRITE':
        return [['lock:{r}:health:a', 'lock:{r}:health:a:waiters', FENCE], []];
      case 'QUARANTINE':
        return [[FENCE], []];
      case 'CLAIM_TICK': {
        const takeOver = this.any(['nothing', 'unbegun', 'unfinished']);
        const args = [
          owner,
          lease,
          1_000,
          this.any(['skip', 'wait']),
          takeOver,
          this.any(['', Date.now()]),
          500,
          500,
          1_000,
          this.any(['', 0, 2]),
        ];
        if (this.#chance(0.5)) return [[LOCK, CLAIM, FENCE, LAST], args];
        const kind = this.any(['tick', 'manual', 'catchUp']);
        const note = [
          kind,
          this.any([0, 2]),
          this.any(['', 'x']),
          this.any(['', 1]),
          this.any(['', Date.now()]),
          1_000,
          '1',
          1_000,
          this.any(['', 1]),
        ];
        return [
          [LOCK, CLAIM, FENCE, LAST, RUNS, RECORD, PAUSE, INSTANCES],
          [...args, ...note],
        ];
      }
      case 'END_RUN':
        return [
          [...lock, RUNS, RECORD],
          [owner, this.any([32, 64]), this.any(['ok', 'error', 'lost', 'none']), '- - -'],
        ];
      case 'READ_RESULT':
        return [[RESULT], []];
      case 'CLAIM_RESULT':
        return [
          [...lock, RESULT],
          [owner, lease, '', ...label],
        ];
      case 'KEEP_RESULT':
        return [
          [...lock, RESULT],
          [owner, 1_000, '=1'],
        ];
      case 'FORGET_RESULT':
        return [[LOCK, RESULT], [1_000]];
      case 'NOTE_MISSED':
        return [
          [LAST, RUNS, RECORD, PAUSE, INSTANCES],
          ['x', 1, this.any([0, 2]), this.any(['', 1_000]), '', 1_000, 1_000, owner, 0, '', Date.now() - 1, Date.now()],
        ];
      case 'PAUSE_JOB':
        return [
          [PAUSE, RECORD, LAST],
          [this.any(['pause', 'resume']), this.any([0, Date.now() + 1_000]), 'x', 1_000, 16],
        ];
      case 'CHANGE_REQUEST':
        return [
          [REQUEST],
          [this.any(['', 'x']), this.any(['', 'y']), 1_000, this.any(['', 'lock:roll:0']), 'request x r'],
        ];
      case 'REGISTER_JOB':
        return [
          [RECORD, LAST, INSTANCES, RUNS],
          [
            owner,
            this.any(['', 'x']),
            this.any(['', Date.now()]),
            1_000,
            this.any(['', 'leave']),
            this.any(['', 1]),
            1_000,
          ],
        ];
      case 'LOOK_JOBS':
        return [
          [LOCK, LAST, RUNS, RECORD, PAUSE, INSTANCES],
          [this.any([0, 2]), this.any([0, 2])],
        ];
      case 'INDEX_JOBS':
        return [[JOBS], [this.any(['add', 'drop', 'list']), 1_000, 'x']];
      case 'EXCHANGE_CLAIM':
        return [
          [CLAIM, LAST],
          [
            this.any([owner, 'finished', '']),
            '',
            this.any(['', 1]),
            this.any(['', owner]),
            this.any([1_000]),
            this.any(['', Date.now()]),
            500,
            500,
            1_000,
            '',
            this.any(['', 1_000]),
          ],
        ];
      case 'FINISH_TICK':
        if (this.#chance(0.5)) return [[CLAIM], [owner, 1_000, this.any(['finished', 'returned'])]];
        return [
          [CLAIM, RUNS, RECORD],
          [owner, 1_000, 'returned', '1', this.any(['', 1])],
        ];
      case 'MARK_DONE':
        return [
          [LOCK, DONE],
          [this.any([owner, '']), 1_000],
        ];
      case 'CALL_ROLL':
        return [[ROLL], [this.any(['nonce', 'other']), '', 'lock:roll:0', 1_000, 5_000, this.any([0, 1])]];
      case 'ANSWER_ROLL':
        return [
          [ROLL, ANSWERS],
          ['nonce', 'w/1', '{}', 5_000],
        ];
      case 'READ_ROLL':
        return [[ANSWERS], this.any([['count'], ['answers', 0, 10], ['connected', 'lock:inbox:*']])];
      case 'GUARD':
        return [
          [this.any([FENCE, LOCK, QUEUE]), 'stock'],
          [64, 1_000, 'vkv', 'SET', 'value'],
        ];
      case 'PROBE_INBOX':
        return [['lock:{r}:health:a'], ['lock:inbox:x', this.any(['probe x 1', '', '0 1 2 r'])]];
      case 'PROBE':
        return [[], ['lock:{r}:probe', FENCE, 'lock:inbox:x', 'get set del time incrby zadd publish']];
    }
  }
}
