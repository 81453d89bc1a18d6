// The program of `npm run chaos`, started by `node --import <loader>`. Its arguments are in options.ts.
import { options, readOptions } from './options.js';
import { complaintsOf, table } from './report/print.js';
import { hasPassed } from './report/row.js';
import { parts } from './run/parts.js';

// Exits, so that processes and folders are cleaned up: see atExit.
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const) {
  process.once(signal, () => process.exit(code));
}

const chosen = readOptions(process.argv.slice(2));
if (chosen.help) {
  console.log(options);
} else {
  const { form, seed, names } = chosen;
  console.log(`Chaos, the ${form} form. Again with: npm run chaos -- --form ${form} --seed ${seed}`);
  let passed = true;
  for (const name of names) {
    console.log(`\n${name}`);
    const startedAt = performance.now();
    const outcome = await parts[name]({ ...chosen, tell: (line) => console.log(line) });
    console.log(`${table(outcome)}\n${complaintsOf(outcome)}`);
    passed &&= hasPassed(outcome);
    console.log(`${Math.ceil((performance.now() - startedAt) / 60_000)} min`);
  }
  console.log(`${passed ? 'passed' : 'FAILED'}: seed ${seed}`);
  if (!passed) process.exitCode = 1;
}
