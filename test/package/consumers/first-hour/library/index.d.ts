export class LibraryService {
  readonly byClass: object;
  readonly byToken: object;
  readonly jobs: object;
  readonly ticks: readonly string[];
  readonly led: number;
  orSkip(): Promise<string | undefined>;
  orThrow(): Promise<string>;
}
export class LibraryModule {}
/** Its copy of the lock package. */
export const locks: Record<'LockError' | 'LockBusyError', new (...args: never[]) => Error> & {
  RedisLockModule: { forRoot(options: object): never };
  RedisLockService: unknown;
};
