import type { RedisLockService } from '../redis-lock.service.js';
import type { Job } from '../schedule/run-job.js';
import { partsOf } from '../service-parts.js';

/** The jobs of one application, for a test. */
interface JobsUnderTest {
  readonly service: RedisLockService;
  names(): string[];
  find(name: string): Job | undefined;
}

export function jobsUnderTestOf(service: object): JobsUnderTest | undefined {
  return partsOf(service)?.jobsUnderTest as JobsUnderTest | undefined;
}
