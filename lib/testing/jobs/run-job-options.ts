import type { INestApplicationContext } from '@nestjs/common';
import { checked, flag, type OptionsOf, OptionTable } from '../../core/api/option-table.js';

/** How a test runs a job once. */
export interface RunJobOptions {
  /**
   * Which tick: of a cron job, an ISO time as `run.tick` has it.
   *
   * @allowed text
   * @default the next tick of the job that this fleet has not had
   */
  tick?: string;
  /** Whether another instance began this tick before, and died. The job needs `onCrash: 'retry'`. @default false */
  rerun?: boolean;
  /**
   * Which application of the fleet runs it.
   *
   * @allowed its `instanceId`, or the application
   * @default the application of these locks
   */
  as?: string | Pick<INestApplicationContext, 'get'>;
}

export const RUN_JOB_OPTIONS = new OptionTable({
  tick: checked<string>(),
  rerun: flag().default(false),
  as: checked<string | Pick<INestApplicationContext, 'get'>>(),
} satisfies OptionsOf<RunJobOptions>);
