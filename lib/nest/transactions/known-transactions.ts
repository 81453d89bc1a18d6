/** A library that opens a transaction around a method, and how its code is recognized. It leaves no mark of its own. */
interface KnownTransactions {
  readonly library: string;
  /** A text of the function that its `@Transactional()` puts in place of the method. Minifiers keep it. */
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

/** The library whose decorator has replaced a method by this function. */
export function libraryOfMethod(method: (...args: never[]) => unknown): string | undefined {
  const source = Function.prototype.toString.call(method);
  return KNOWN.find(({ text }) => text !== undefined && source.includes(text))?.library;
}

/** Whether the transaction that calls a method calls it directly, or through other code. */
export interface CallingTransaction {
  readonly library: string;
  readonly isDirect: boolean;
}

/** Deep enough for a service that is called in the transaction of another one. */
const FRAMES = 40;

/** The library in whose transaction the running call was made, as far as the stack shows. */
export function callingTransaction(below: (...args: never[]) => unknown): CallingTransaction | undefined {
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
