// Reads the table of the metrics, which is a value and not a type.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { ROOT } from './declarations.mjs';

const FILE = join(ROOT, 'lib/telemetry/names.ts');

/** What lib/telemetry/names.ts exports. It imports types only, so that it runs by itself. */
export async function readMetrics() {
  const { outputText } = ts.transpileModule(readFileSync(FILE, 'utf8'), {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023 },
  });
  return await import(`data:text/javascript,${encodeURIComponent(outputText)}`);
}
