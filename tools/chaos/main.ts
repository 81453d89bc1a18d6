// What `npm run chaos` runs, by `node --import <loader>`; see options.ts for what it takes.
import { readFileSync, writeFileSync } from 'node:fs';
import { options, readOptions } from './options.js';
import { complaintsOf, table, withTable } from './report/print.js';
import { hasPassed } from './report/row.js';
import { machine } from './report/machine.js';
import { parts } from './run/parts.js';

const PAGE = new URL('../../docs/operations/reliability.md', import.meta.url);

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
  const { form, seed, names, writeDocs } = chosen;
  console.log(`Chaos, the ${form} form. Again with: npm run chaos -- --form ${form} --seed ${seed}`);
  let passed = true;
  for (const name of names) {
    console.log(`\n${name}`);
    const startedAt = performance.now();
    const outcome = await parts[name]({ ...chosen, tell: (line) => console.log(line) });
    console.log(`${table(outcome)}\n${complaintsOf(outcome)}`);
    passed &&= hasPassed(outcome);
    const minutes = Math.ceil((performance.now() - startedAt) / 60_000);
    if (writeDocs) {
      const how = `\`npm run chaos -- --form ${form} --part ${name} --seed ${seed}\`, ${minutes} min, ${machine()}:`;
      writeFileSync(PAGE, withTable(readFileSync(PAGE, 'utf8'), name, `${how}\n\n${table(outcome)}`));
    }
  }
  console.log(`${passed ? 'passed' : 'FAILED'}: seed ${seed}`);
  if (!passed) process.exitCode = 1;
}
