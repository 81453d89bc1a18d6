// Many instances in one process: each has connections of its own.
import { createLockService } from '../../../dist/modules/nest/module/create-lock-service.js';
import { resolveModuleOptions } from '../../../dist/modules/nest/module/module-options.js';

const AT_ONCE = 25;

/**
 * @param {object} options of `forRoot`, for each of them
 * @param {(service: object, index: number) => void} [begin] called for each one when its batch has started
 */
export async function startInstances(count, options, begin = () => {}) {
  const services = [];
  while (services.length < count) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - services.length) }, () =>
      createLockService(resolveModuleOptions(options)),
    );
    for (const service of await Promise.all(some)) begin(service, services.push(service) - 1);
  }
  return services;
}
