import { SLOTS, slotOf } from './topology/slot.js';

const ENCODED = /[%{}\u0000-\u001f\u007f]/g;

/**
 * Encodes a resource for use in a key. Braces would move the hash tag of a cluster. Control characters would garble an
 * operator's terminal. `%` is encoded so that two resources never have the same key.
 */
export function encodeResource(resource: string): string {
  // Nearly always: a replacement would cost as much as the rest of the key.
  return resource.search(ENCODED) === -1 ? resource : percentEncoded(resource, ENCODED);
}

/** @param characters the encoded ones, including the percent sign */
export function percentEncoded(text: string, characters: RegExp): string {
  return text.replace(characters, (character) => {
    return `%${character.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`;
  });
}

export function decodeResource(encoded: string): string {
  if (!encoded.includes('%')) return encoded;
  return encoded.replace(/%([0-9A-F]{2})/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
}

/** In a pattern of Redis, for the text itself. */
function escaped(text: string): string {
  return text.replace(/[*?[\]\\]/g, '\\$&');
}

/** The queue of a lock, by its key. */
export function waitersOf(lockKey: string): string {
  return `${lockKey}:waiters`;
}

/** Which call of a lock began last that ends older ones, by the key of the lock. */
export function newestOf(lockKey: string): string {
  return `${lockKey}:newest`;
}

/**
 * The names of all keys and channels. The part from a resource is in braces, and an encoded resource has no braces: so
 * no resource can name the keys of another one.
 */
export class Keys {
  constructor(readonly prefix: string) {}

  /** The lock: a string (exclusive) or a hash (other modes). */
  lock(resource: string): string {
    return `${this.prefix}:{${encodeResource(resource)}}`;
  }

  waiters(resource: string): string {
    return waitersOf(this.lock(resource));
  }

  /** A pattern for SCAN that matches only the keys of resources with this prefix. */
  matching(resourcePrefix: string): string {
    return `${escaped(`${this.prefix}:{${encodeResource(resourcePrefix)}`)}*`;
  }

  /** The resource of a lock or a queue, by its key; `undefined` for other keys. */
  resourceOf(key: string): string | undefined {
    const [, encoded] = /\{([^{}]*)\}(?::waiters)?$/s.exec(key) ?? [];
    return encoded === undefined ? undefined : decodeResource(encoded);
  }

  /** The claim of one tick of a singleton job, in the slot of the job's lock. */
  tick(resource: string, tick: string): string {
    return `${this.lock(resource)}:tick:${encodeResource(tick)}`;
  }

  /** The last accounted tick of a singleton job: its time, in milliseconds since the Unix epoch. */
  lastTick(resource: string): string {
    return `${this.lock(resource)}:last-tick`;
  }

  jobRuns(resource: string): string {
    return `${this.lock(resource)}:runs`;
  }

  jobRecord(resource: string): string {
    return `${this.lock(resource)}:job`;
  }

  jobPause(resource: string): string {
    return `${this.lock(resource)}:paused`;
  }

  jobInstances(resource: string): string {
    return `${this.lock(resource)}:instances`;
  }

  /** A request of an operator: to run this job now, or to report that a lease was ended. */
  request(resource: string, id: string): string {
    return `${this.lock(resource)}:request:${id}`;
  }

  /** All that is read of a singleton job: lock, last accounted tick, history, record, pause and instances. */
  ofJob(resource: string): string[] {
    const lock = this.lock(resource);
    return [lock, `${lock}:last-tick`, `${lock}:runs`, `${lock}:job`, `${lock}:paused`, `${lock}:instances`];
  }

  /** The names of all singleton jobs. On a cluster it is in a slot of its own. */
  jobIndex(): string {
    return `${this.prefix}:jobs`;
  }

  /** The marker of `exec --once`: the command has succeeded under this key. */
  done(resource: string, key: string): string {
    return `${this.lock(resource)}:done:${encodeResource(key)}`;
  }

  /** The stored result of a call of `once`, in the slot of its lock. */
  result(resource: string): string {
    return `${this.lock(resource)}:result`;
  }

  /**
   * The last fencing tick. All resources share it: otherwise each of them would leave a counter behind.
   *
   * @param _lockKey the key of a lock whose leases it numbers
   */
  fence(_lockKey: string): string {
    return `${this.prefix}:fence`;
  }

  /** A key that is no lock, and that patterns of the ACL for locks match. */
  probe(): string {
    return `${this.lock('probe')}:probe`;
  }

  /**
   * A key for the probes of one client, which no lock has.
   *
   * @param _slot the slot it must be in, in a cluster
   */
  health(clientId: string, _slot?: number): string {
    return `${this.lock('probe')}:health:${encodeResource(clientId)}`;
  }

  /** The channel on which a client learns of its grants. */
  inbox(clientId: string): string {
    return `${this.prefix}:inbox:${clientId}`;
  }

  inboxes(): string {
    return `${escaped(this.inbox(''))}*`;
  }

  /** The key of the current roll call. In a cluster, it and the answers are in one slot. */
  roll(): string {
    return `${this.prefix}:roll`;
  }

  rollAnswers(nonce: string): string {
    return `${this.roll()}:${nonce}`;
  }

  /** The reports of instances that Redis lets hear no roll calls. No nonce is so short. */
  reports(): string {
    return this.rollAnswers('unasked');
  }

  /**
   * The channel of roll calls, to which all clients subscribe. Redis passes messages on to clients in every database.
   */
  rollChannel(database: number): string {
    return `${this.prefix}:roll:${database}`;
  }
}

/** A short text for each slot that hashes to it. The same on every instance. */
const tags: string[] = [];
let found = 0;
let tried = 0;

/** The first text with this slot, counting up in base 36. */
function tagOf(slot: number): string {
  while (tags[slot] === undefined && found < SLOTS) {
    const tag = (tried++).toString(36);
    const own = slotOf(tag);
    if (tags[own] !== undefined) continue;
    tags[own] = tag;
    found++;
  }
  return tags[slot]!;
}

/** The names in a cluster. All keys of one script must be in one slot, so there is a fence for each slot in use. */
export class ClusterKeys extends Keys {
  override fence(lockKey: string): string {
    return `${this.prefix}:{${tagOf(slotOf(lockKey))}}:fence`;
  }

  override roll(): string {
    return `${this.prefix}:{${tagOf(0)}}:roll`;
  }

  override health(clientId: string, slot = 0): string {
    return `${this.prefix}:{${tagOf(slot)}}:health:${encodeResource(clientId)}`;
  }
}

/** For a field of the history: without spaces, and never empty. */
export function encodeField(text: string | undefined): string {
  if (text === undefined || text === '') return '-';
  if (text === '-') return '%2D';
  return percentEncoded(text, /[%\u0000-\u0020\u007f]/g);
}

export function decodeField(field: string | undefined): string | undefined {
  return field === undefined || field === '-' ? undefined : decodeResource(field);
}
