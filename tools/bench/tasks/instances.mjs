// Many instances in one process: each has connections of its own.
import { createLockService } from '../../../dist/esm/nest/module/create-lock-service.js';
import { resolveModuleOptions } from '../../../dist/esm/nest/module/module-options.js';

const AT_ONCE = 25;

/** @param {object} options of `forRoot`, for each of them */
export async function startInstances(count, options) {
  const services = [];
  while (services.length < count) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - services.length) }, () =>
      createLockService(resolveModuleOptions(options)),
    );
    services.push(...(await Promise.all(some)));
  }
  return services;
}
