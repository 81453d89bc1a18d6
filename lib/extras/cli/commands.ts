import type { Command } from './frame/command.js';
import { doctor } from './doctor/doctor.js';
import { exec } from './exec/exec.js';
import { ui } from './ui/ui.js';
import { completion } from './commands/completion.js';
import { contention } from './commands/contention.js';
import { instances } from './commands/instances.js';
import { job } from './jobs/job.js';
import { jobs } from './jobs/jobs.js';
import { leaders } from './commands/leaders.js';
import { ls } from './commands/ls.js';
import { release } from './commands/release.js';
import { status } from './commands/status.js';
import { watch } from './commands/watch.js';
import { who } from './commands/who.js';
import { why } from './commands/why.js';

/** All commands, in the order of the help: what to look at first comes first. */
export const COMMANDS: readonly Command[] = [
  status,
  ls,
  why,
  watch,
  who,
  instances,
  contention,
  doctor,
  leaders,
  jobs,
  job,
  release,
  ui,
  exec,
  completion(() => COMMANDS),
];
