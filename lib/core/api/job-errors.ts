import { brand } from '../util/brand.js';
import { quote, quoteSome } from '../util/quoted.js';
import { LockError } from './errors.js';
import { nearest } from './validation.js';

/**
 * No singleton job has this name, or its code is in another application.
 *
 * @remedy Correct the name. Where `instances` names some, run the job there.
 */
export class JobNotFoundError extends LockError {
  override readonly code = 'JOB_NOT_FOUND';

  constructor(
    message: string,
    /** The name that was asked for. */
    readonly job: string,
    /** The instances of other applications that have the job, as far as that is known; at most 1,000. */
    readonly instances: readonly string[] = [],
  ) {
    super(message, '');
  }

  /** @param known the names of the jobs that there are */
  static unknown(job: string, where: string, known: readonly string[]): JobNotFoundError {
    const near = nearest(job, known);
    const hint =
      near !== undefined
        ? `Did you mean ${quote(near)}?`
        : known.length > 0
          ? `There are: ${quoteSome([...known].sort())}.`
          : 'There are no jobs.';
    return new JobNotFoundError(`${where} has no job called ${quote(job)}. ${hint}`, job);
  }

  static elsewhere(job: string, instances: readonly string[]): JobNotFoundError {
    const these = instances.length > 0 ? `These instances have it: ${quoteSome(instances)}` : 'No instance has it now';
    const message =
      `The job ${quote(job)} belongs to another application, so this instance has no code for it. ${these}. ` +
      'Run it there.';
    return new JobNotFoundError(message, job, instances);
  }
}

brand({ JobNotFoundError });
