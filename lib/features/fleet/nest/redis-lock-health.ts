import { Inject, Injectable } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import { type HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import { InvalidLockOptionsError } from '../../../kernel/api/errors.js';
import { describeValue, Option, type OptionsOf, OptionTable } from '../../../kernel/api/validation.js';
import { HEALTH_OPTIONS, type HealthOptions, type LockHealth } from '../core/health/health-checks.js';
import type { RedisLockService } from '../../../nest/redis-lock.service.js';
import { DEFAULT_NAME, registered } from '../../../nest/service-parts.js';

/** Options of `RedisLockHealth.isHealthy()`. */
export interface RedisLockHealthOptions extends HealthOptions {
  /**
   * The name of the lock service to check: its module option `service`.
   *
   * @allowed the `service` of a registration
   * @default the default service
   */
  service?: string;
}

export const HEALTH_INDICATOR_OPTIONS = new OptionTable({
  ...HEALTH_OPTIONS.options,
  service: Option.text(/./s, 'the name of a registration'),
} satisfies OptionsOf<RedisLockHealthOptions>);

/**
 * The details that {@link RedisLockHealth} adds to `status`. They contain no addresses, no resource names and no
 * credentials.
 */
export type LockHealthData = Omit<LockHealth, 'status'> & {
  /** `true` if there are `problems`, although locks can be acquired. */
  readonly degraded: boolean;
};

/**
 * A health indicator for `@nestjs/terminus`. List it as a provider, in a module that imports `TerminusModule`.
 *
 * In a method with `@Get('ready')` and `@HealthCheck()`:
 *
 * ```ts
 * return this.health.check([() => this.locks.isHealthy('locks', { timeoutMs: 500 })]);
 * ```
 *
 * Use it for readiness, not for liveness: a restart does not repair Redis, and loses the locks of this process.
 */
@Injectable()
export class RedisLockHealth {
  readonly #indicators: HealthIndicatorService;
  readonly #modules: ModuleRef;

  constructor(
    @Inject(HealthIndicatorService) indicators: HealthIndicatorService,
    @Inject(ModuleRef) modules: ModuleRef,
  ) {
    this.#indicators = indicators;
    this.#modules = modules;
  }

  /**
   * Resolves to `up` if a lock could be acquired now, otherwise to `down`, within `timeoutMs`. If the status of
   * `RedisLockService.health()` is `degraded`, this status is `up`, and `degraded` is `true`.
   *
   * @param key the name of this check in the response
   * @throws InvalidLockOptionsError if the key or an option is invalid, or no registration has this `service`
   */
  async isHealthy<const Key extends string>(
    key: Key,
    options: RedisLockHealthOptions = {},
  ): Promise<HealthIndicatorResult<Key, 'up' | 'down', LockHealthData>> {
    checkKey(key);
    HEALTH_INDICATOR_OPTIONS.check('isHealthy', options);
    const { service: name, timeoutMs } = options;
    const { status, ...health } = await this.#service(name).health({ timeoutMs });
    const data: LockHealthData = { degraded: status === 'degraded', ...health };
    const indicator = this.#indicators.check(key);
    return status === 'down' ? indicator.down(data) : indicator.up(data);
  }

  #service(name = DEFAULT_NAME): RedisLockService {
    const asker = { name: 'RedisLockHealth', option: 'service', passedAs: 'the option service' };
    return registered<RedisLockService>(this.#modules, name, asker);
  }
}

/** A forgotten key would be `undefined` or `[object Object]` in the answer, and its options would be ignored. */
function checkKey(key: unknown): void {
  if (typeof key === 'string' && key !== '') return;
  throw new InvalidLockOptionsError(
    `key of isHealthy() must be a name for the result, such as 'locks', not ${describeValue(key)}.`,
    'key',
  );
}
