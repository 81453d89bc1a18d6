import { Logger } from '@nestjs/common';
import { InvalidLockOptionsError } from '../../kernel/api/errors.js';
import type { Scan } from '../scan.js';
import { partsOf } from '../service-parts.js';
import { type LockedMethod, lockedMethodsOf } from './method.js';

/**
 * Refuses locked methods with a known `@Transactional()` above the lock. The first call of a method shows the others.
 *
 * @param isExempt returns true for a method that is right anyway: `@LockHandler` is outside of every decorator, and the
 *   release may wait for the transaction
 */
export function refuseWrongOrder(scan: Scan, isExempt: (method: object) => boolean): void {
  for (const prototype of scan.allPrototypes) {
    for (const locked of lockedMethodsOf(prototype).filter(scan.isOurs)) {
      const above = methodAbove(prototype, locked);
      if (!above || isExempt(above)) continue;
      const library = libraryOfMethod(above);
      if (library) throw wrongOrder(locked, library);
    }
  }
}

/** Returns the function with which a decorator above has replaced a locked method. */
function methodAbove(prototype: object, { name, wrapped }: LockedMethod): ((...args: never[]) => unknown) | undefined {
  const method: unknown = Object.getOwnPropertyDescriptor(prototype, name)?.value;
  return typeof method === 'function' && method !== wrapped ? (method as LockedMethod['wrapped']) : undefined;
}

/** The methods with a logged warning. */
const warnedOf = new WeakSet<LockedMethod>();

/**
 * Checks at the first call of a locked method, when all its decorators have been applied, whether it is made inside a
 * transaction, which would be committed after the lock is released.
 *
 * @param running the function that runs
 * @returns the error for all calls of the method
 */
export function refusalOfFirstCall(
  service: object,
  prototype: object,
  method: LockedMethod,
  running: (...args: never[]) => unknown,
): InvalidLockOptionsError | undefined {
  const transaction = callingTransaction(running);
  if (!transaction) return undefined;
  const hooks = partsOf(service)?.transactions;
  if (hooks?.current() !== undefined) return undefined;
  const { library, isDirect } = transaction;
  if (isDirect && methodAbove(prototype, method)) return wrongOrder(method, library, hooks !== undefined);
  if (!warnedOf.has(method)) {
    warnedOf.add(method);
    new Logger('RedisLockModule').warn(
      `${method.where} was called inside a transaction of ${library}. ${method.decorator} releases the lock when the ` +
        `method ends, before the commit, so the next holder reads old rows. Take the lock outside: call ` +
        `${method.where} before the transaction begins. ${waysOut(library, hooks !== undefined)}`,
    );
  }
  return undefined;
}

/**
 * The error for a transaction around a lock.
 *
 * @param hasHooks whether the module option transactions is set, and does not cover this transaction
 */
function wrongOrder({ where, decorator }: LockedMethod, library: string, hasHooks = false): InvalidLockOptionsError {
  return new InvalidLockOptionsError(
    `${where}: @Transactional() of ${library} is above ${decorator}, so the transaction is around the lock. The ` +
      `lock would be released before the commit, and the next holder would read old rows. Write ${decorator}() above ` +
      `@Transactional(). ${waysOut(library, hasHooks)}`,
    'decorator',
  );
}

function waysOut(library: string, hasHooks: boolean): string {
  const waiting = hasHooks
    ? `Or have the release wait for the end of the transaction: the module option transactions is set, but does not ` +
      `cover ${library}. Pass the transactions of ${library} to it with follow() or run() of a TransactionScope. `
    : `Or set the module option transactions, so that the release waits for the end of a ${library} transaction. `;
  return (
    waiting +
    `If the release may come before the commit, call locks.acquire() in the method instead. ` +
    `See docs/guide/with-transactions.md.`
  );
}

/** A library that opens a transaction around a method, with the traits of its code. It leaves no mark of its own. */
interface KnownTransactions {
  readonly library: string;
  /** A text in the function that its `@Transactional()` puts in place of the method. Minifiers keep it. */
  readonly text?: string;
  /** Its frames in a stack, below the work of a transaction. */
  readonly frame: RegExp;
}

const KNOWN: readonly KnownTransactions[] = [
  {
    library: 'typeorm-transactional',
    text: 'No CLS namespace defined in your app',
    frame: /[\\/]typeorm-transactional[\\/]/,
  },
  // Its method is a proxy, which looks like the method itself.
  { library: '@nestjs-cls/transactional', frame: /[\\/]@nestjs-cls[\\/]transactional/ },
  {
    library: 'MikroORM',
    text: '@Transactional() decorator can only be applied to methods of classes with',
    frame: /[\\/]@mikro-orm[\\/]core[\\/](decorators[\\/]Transactional|utils[\\/]TransactionManager)\./,
  },
  { library: 'TypeORM', frame: /EntityManager\.transaction .*[\\/]typeorm[\\/]/ },
  { library: 'Prisma', frame: /_transactionWithCallback .*[\\/]@prisma[\\/]client[\\/]/ },
];

/** Returns the library whose decorator has replaced a method by this function. */
function libraryOfMethod(method: (...args: never[]) => unknown): string | undefined {
  const source = Function.prototype.toString.call(method);
  return KNOWN.find(({ text }) => text !== undefined && source.includes(text))?.library;
}

/** Enough for a service that is called in the transaction of another one. */
const FRAMES = 40;

/** Returns the library in whose transaction the running call was made, maybe through other code, if the stack shows it. */
function callingTransaction(below: (...args: never[]) => unknown) {
  const { stackTraceLimit } = Error;
  const origin: { stack?: unknown } = {};
  try {
    Error.stackTraceLimit = FRAMES;
    Error.captureStackTrace(origin, below);
    // An application may replace `Error.prepareStackTrace`, and then a stack may be anything.
    if (typeof origin.stack !== 'string') return undefined;
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
  const frames = origin.stack.split('\n').filter((line) => /^\s+at /.test(line));
  for (const { library, frame } of KNOWN) {
    const at = frames.findIndex((line) => frame.test(line));
    if (at >= 0) return { library, isDirect: at === 0 };
  }
  return undefined;
}
