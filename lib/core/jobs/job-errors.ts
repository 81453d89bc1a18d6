import { brand } from '../util/brand.js';
import { quote, quoteSome } from '../util/quoted.js';
import { LockError } from '../api/errors.js';
import { nearest } from '../api/validation.js';

/**
 * No singleton job has this name, or its code is in another application.
 *
 * @remedy Correct the name. Where `instances` names some, run the job there.
 */
export class JobNotFoundError extends LockError {
  override readonly code = 'JOB_NOT_FOUND';

  /** @internal */
  constructor(
    message: string,
    /** The name that was asked for. */
    readonly job: string,
    /** The instances of other applications that have the job, as far as that is known; at most 1,000. */
    readonly instances: readonly string[] = [],
  ) {
    super(message, '');
  }

  /**
   * @internal
   * @param known the names of the jobs that there are
   */
  static unknown(job: string, where: string, known: readonly string[], more = ''): JobNotFoundError {
    const near = nearest(job, known);
    const hint =
      near !== undefined
        ? `Did you mean ${quote(near)}?`
        : known.length > 0
          ? `There are: ${quoteSome([...known].sort())}.`
          : 'There are no jobs.';
    return new JobNotFoundError(`${where} has no job called ${quote(job)}. ${hint}${more}`, job);
  }

  /** @internal */
  static elsewhere(job: string, instances: readonly string[]): JobNotFoundError {
    const these = `These instances have it: ${quoteSome(instances)}. Run it there.`;
    const message =
      `This instance has no code for the job ${quote(job)}: it is of another application, or it was removed here. ` +
      (instances.length > 0 ? these : 'No other instance has it now.');
    return new JobNotFoundError(message, job, instances);
  }
}

brand({ JobNotFoundError });
