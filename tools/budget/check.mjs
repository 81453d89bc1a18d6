// Part of `npm run lint`: lib/ stays within tools/budget/budgets.json.
//
//   node tools/budget/check.mjs         prints what has grown, and what to write into that file where it must grow
//   node tools/budget/check.mjs --fit   writes the file so that it fits what is there. A commit that raises a budget says why.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { formatted } from '../format.mjs';
import { findings, fitted } from './compare.mjs';
import { measure } from './measure.mjs';

const LIB = join(import.meta.dirname, '../../lib');
const BUDGETS = join(import.meta.dirname, 'budgets.json');

const files = readdirSync(LIB, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.ts'));
const measured = measure(new Map(files.map((file) => [file, readFileSync(join(LIB, file), 'utf8')])));

if (process.argv.includes('--fit')) {
  writeFileSync(BUDGETS, await formatted(BUDGETS, JSON.stringify(fitted(measured))));
}

const found = findings(measured, JSON.parse(readFileSync(BUDGETS, 'utf8')));
for (const finding of found) console.error(finding);
const rooms = Object.values(measured.rooms);
const [all, lines] = [0, 1].map((column) => rooms.reduce((sum, room) => sum + room[column], 0));
console.log(
  `Budgets: ${found.length} findings in ${all} files with ${lines} lines and ${measured.jobTypes.length} types of jobs.`,
);
if (found.length > 0) console.error('Budgets are in tools/budget/budgets.json. A commit that raises one says why.');
process.exitCode = found.length > 0 ? 1 : 0;
