import type { CanActivate, ModuleMetadata, Type } from '@nestjs/common';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { describeValue, Option, type OptionsOf, OptionTable } from '../../../kernel/api/validation.js';
import { quote, quoteSome } from '../../../kernel/util/quoted.js';
import { DEFAULT_NAME } from '../../../nest/service-parts.js';
import { CONSOLE_ACTIONS, type ConsoleAction } from '../bodies.js';

/** The options of `RedisLockConsoleModule.forRoot()`. */
export interface RedisLockConsoleOptions {
  /**
   * The path of the page, below the global prefix of the application.
   *
   * @allowed segments of `A-Z a-z 0-9 _ . ~ -`, with `/` between them
   * @default 'locks'
   */
  path?: string;
  /**
   * The guards that protect the page, as in `@UseGuards`. Nest instantiates classes, with the providers of `imports`.
   * Set either this or `unguarded`.
   *
   * @allowed one or more classes or instances with `canActivate`
   * @default none
   */
  guards?: readonly (CanActivate | Type<CanActivate>)[];
  /**
   * Confirms that a global guard, a proxy or the network decides who may see the page.
   *
   * @allowed `'I know'`
   * @default none
   */
  unguarded?: 'I know';
  /**
   * The actions that users of the page may take. `'release'` ends one lease, selected by its fencing token. The other
   * actions run, pause and resume a job, even if only another instance has it.
   *
   * @allowed `'release'`, `'runJob'`, `'pauseJob'`, `'resumeJob'`
   * @default none: the page is read-only
   */
  actions?: readonly ConsoleAction[];
  /**
   * Returns the name of the user who takes an action, for the log and the event. Called with the Express or Fastify
   * request, after the guards. Without a name, the action is rejected. Required with `actions`.
   *
   * @allowed a function that returns a name of 1 to 100 characters, or a promise of one
   * @default none
   */
  // oxlint-disable-next-line typescript/no-explicit-any -- the request is that of the platform, with what guards have put there
  who?: (request: any) => string | undefined | null | Promise<string | undefined | null>;
  /**
   * The lock services to show. The first one is selected when the page opens.
   *
   * @allowed `service` names of `RedisLockModule.forRoot`
   * @default the default service
   */
  services?: readonly string[];
  /**
   * The origins from which browsers may request an action, such as `https://ops.example.com`. Only needed if your CORS
   * settings allow other origins to send any header, and the page is served without TLS.
   *
   * @allowed origins
   * @default none: the `Sec-Fetch-Site` header is checked instead
   */
  allowedOrigins?: readonly string[];
  /**
   * The title of the page.
   *
   * @allowed 1 to 100 characters
   * @default 'Locks'
   */
  title?: string;
  /**
   * The modules whose providers the guards inject.
   *
   * @allowed modules, like the `imports` of `@Module`
   * @default none
   */
  imports?: ModuleMetadata['imports'];
}

export const CONSOLE_OPTIONS = new OptionTable({
  path: Option.text(
    /^\/?[\w~-][\w.~-]*(?:\/[\w~-][\w.~-]*)*\/?$/,
    'segments of letters, digits, _ . ~ and -, with / between them, such as ops/locks',
  ).default('locks'),
  guards: Option.checked(checkGuards),
  unguarded: Option.checked(checkUnguarded),
  actions: Option.checked(checkActions),
  who: Option.callback<NonNullable<RedisLockConsoleOptions['who']>>(),
  services: Option.checked(checkNames),
  allowedOrigins: Option.checked(checkOrigins),
  title: Option.text(/^[^]{1,100}$/, '1 to 100 characters').default('Locks'),
  imports: Option.checked(() => {}),
} satisfies OptionsOf<RedisLockConsoleOptions>);

/** The options with what was left out. */
export interface ResolvedConsoleOptions extends RedisLockConsoleOptions {
  /** Without slashes around it. */
  readonly path: string;
  readonly guards: readonly (CanActivate | Type<CanActivate>)[];
  readonly actions: readonly ConsoleAction[];
  readonly services: readonly string[];
  readonly title: string;
}

/** @throws InvalidLockOptionsError */
export function resolveConsoleOptions(options: RedisLockConsoleOptions): ResolvedConsoleOptions {
  CONSOLE_OPTIONS.check('RedisLockConsoleModule.forRoot', options);
  const { guards = [], actions = [], services = [DEFAULT_NAME], unguarded, who } = options;
  const { path = CONSOLE_OPTIONS.defaults.path, title = CONSOLE_OPTIONS.defaults.title } = options;
  if (guards.length === 0 && unguarded === undefined) {
    throw wrong(
      'guards',
      "is missing: without it, each caller who reaches the path sees every lock. Pass guards, or unguarded: 'I know' if a " +
        'global guard, a proxy or the network decides who gets there.',
    );
  }
  if (guards.length > 0 && unguarded !== undefined)
    throw wrong('unguarded', 'is for a console without guards. Leave out either unguarded or guards.');
  if (actions.length > 0 && who === undefined) {
    throw wrong('who', 'is missing: actions need a name for the log, such as who: (request) => request.user?.email.');
  }
  return { ...options, path: path.replace(/^\/|\/$/g, ''), title, guards, actions, services };
}

function checkGuards(option: string, value: unknown): void {
  const isGuard = (each: unknown): boolean =>
    typeof each === 'function' || typeof (each as CanActivate | null)?.canActivate === 'function';
  if (Array.isArray(value) && value.every(isGuard)) return;
  throw wrong(option, `must be a list of guards, as @UseGuards() takes them, not ${describeValue(value)}.`);
}

function checkUnguarded(option: string, value: unknown): void {
  if (value !== 'I know') throw wrong(option, `must be 'I know', not ${describeValue(value)}.`);
}

function checkActions(option: string, value: unknown): void {
  const known: readonly unknown[] = CONSOLE_ACTIONS;
  if (Array.isArray(value) && value.every((each) => known.includes(each))) return;
  const unknown = Array.isArray(value) ? value.find((each) => !known.includes(each)) : value;
  throw wrong(option, `must be a list of ${quoteSome(CONSOLE_ACTIONS)}, not ${describeValue(unknown)}.`);
}

function checkNames(option: string, value: unknown): void {
  const isName = (each: unknown): boolean => typeof each === 'string' && each !== '';
  const names = Array.isArray(value) ? value : [];
  if (names.length > 0 && names.every(isName) && new Set(names).size === names.length) return;
  throw wrong(option, `must be a list of one or more names, each once, not ${describeValue(value)}.`);
}

function checkOrigins(option: string, value: unknown): void {
  const origins: unknown[] = Array.isArray(value) ? value : [value];
  const bad = origins.find((each) => typeof each !== 'string' || originOf(each) !== each);
  if (Array.isArray(value) && bad === undefined) return;
  const shown = typeof bad === 'string' ? quote(bad) : describeValue(bad);
  throw wrong(option, `must be a list of origins such as https://ops.example.com, without a path, not ${shown}.`);
}

function originOf(text: string): string | undefined {
  try {
    return new URL(text).origin;
  } catch {
    return undefined;
  }
}

function wrong(option: string, what: string): InvalidLockOptionsError {
  return new InvalidLockOptionsError(`${option} of RedisLockConsoleModule.forRoot ${what}`, option);
}
