// npm run format:check   whether Prettier would leave every file as it is. It looks at what is new since it last passed here.
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { runCommand } from './command.mjs';
import { changedFiles } from './lint/new-files.mjs';
import { Passed } from './lint/passed.mjs';
import { root } from './setup.mjs';

const PRETTIER = join(root, 'node_modules/prettier/bin/prettier.cjs');
/** What is longer than this list is nearly everything, and a command line has an end. */
const MANY = 500;

await runCommand(() => {
  const passed = new Passed('prettier', { rules: ['.prettierrc', '.prettierignore', 'package-lock.json'] });
  const files = changedFiles(passed.kept, passed.now);
  if (files.length > 0) {
    const args = [PRETTIER, '--check', '--ignore-unknown', ...(files.length > MANY ? ['.'] : files)];
    const { status, error } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
    if (error) throw error;
    if (status !== 0) return 1;
  }
  passed.keep();
  return 0;
});
