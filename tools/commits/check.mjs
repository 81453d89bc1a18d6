// node tools/commits/check.mjs main..HEAD   checks the message of each commit in a range of Git, merges left out
import { execFileSync } from 'node:child_process';
import { problemsOf } from './rules.mjs';

const [range, ...others] = process.argv.slice(2);
if (range === undefined || others.length > 0 || range.startsWith('-')) {
  console.error('Usage: node tools/commits/check.mjs <range>, for example main..HEAD');
  process.exit(2);
}

// %x00 ends a field: no message contains it.
const log = execFileSync('git', ['log', '--no-merges', '--reverse', '--format=%h%x00%B%x00', range, '--'], {
  encoding: 'utf8',
  maxBuffer: 64 * 1024 * 1024,
});
const fields = log.split('\0').slice(0, -1);
let refused = 0;
for (let at = 0; at < fields.length; at += 2) {
  const [hash, message] = [fields[at].trim(), fields[at + 1]];
  const problems = problemsOf(message);
  if (problems.length === 0) continue;
  refused += 1;
  console.error([`${hash} ${message.split('\n')[0]}`, ...problems].join('\n  '));
}
console.log(`${fields.length / 2} commits, ${refused} refused`);
process.exitCode = refused === 0 ? 0 : 1;
