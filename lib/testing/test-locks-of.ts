import type { INestApplicationContext } from '@nestjs/common';
import { describeValue } from '../kernel/api/validation.js';
import { entryOf, isObject } from '../kernel/util/objects.js';
import { quote } from '../kernel/util/quoted.js';
import type { ResolvedModuleOptions } from '../nest/module/module-options.js';
import type { RedisLockService } from '../nest/redis-lock.service.js';
import { DEFAULT_NAME, getRedisLockOptionsToken, getRedisLockToken, partsOf } from '../nest/service-parts.js';
import type { FleetPlace } from './fleet/test-fleet.js';
import { TestKitError } from './fleet/test-kit-error.js';
import { TestLocks } from './test-locks.js';

const known = new WeakMap<object, TestLocks>();

/**
 * Returns the test controls for the locks of an application.
 *
 * @param app the application, or the `TestingModule`
 * @param name the `service` of the registration; without it, the default one
 * @throws TestKitError if the application does not use the testing kit
 */
export function testLocks(app: Pick<INestApplicationContext, 'get'>, name: string = DEFAULT_NAME): TestLocks {
  if (typeof (app as Partial<INestApplicationContext> | undefined)?.get !== 'function') throw notAnApp(app);
  const service = found<RedisLockService>(app, getRedisLockToken(name));
  if (service === undefined) {
    const what = `The application has no lock service called ${quote(name)}`;
    throw found(app, getRedisLockToken()) === undefined ? notOnKit(what) : misnamed(what);
  }
  const place = partsOf(service)?.place;
  if (place === undefined) throw notOnKit(`The application keeps the locks of ${quote(name)} ${whereOf(app, name)}`);
  return entryOf(known, place, () => new TestLocks(service, place as FleetPlace));
}

function found<T>(app: Pick<INestApplicationContext, 'get'>, token: string): T | undefined {
  try {
    return app.get<T>(token, { strict: false });
  } catch {
    return undefined;
  }
}

function notAnApp(given: unknown): TestKitError {
  const hint =
    isObject(given) && ('then' in given || 'compile' in given)
      ? ' Await compile() first.'
      : ' Pass what compile() or NestFactory.create() resolves to.';
  return new TestKitError('notOnKit', `testLocks() needs the application, not ${describeValue(given)}.${hint}`);
}

function misnamed(what: string): TestKitError {
  return new TestKitError(
    'notOnKit',
    `${what}. The second argument of testLocks() is the name of a registration: the service of RedisLockModule.forRoot(). ` +
      'Leave it out for the default service.',
  );
}

function whereOf(app: Pick<INestApplicationContext, 'get'>, name: string): string {
  const options = found<ResolvedModuleOptions>(app, getRedisLockOptionsToken(name));
  if (options?.quorum) return 'in a quorum';
  return options?.connection() === 'memory:'
    ? "in 'memory:', which a test cannot control"
    : 'on Redis, or overrides it';
}

function notOnKit(what: string): TestKitError {
  return new TestKitError(
    'notOnKit',
    `${what}, so testLocks() cannot control it. Import RedisLockTestingModule.forRoot() in place of ` +
      'RedisLockModule.forRoot(), or build the application with withTestLocks(Test.createTestingModule({ ... })).compile().',
  );
}
