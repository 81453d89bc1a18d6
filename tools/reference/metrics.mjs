// Reads the table of the metrics, which is a value and not a type.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import ts from 'typescript';
import { ROOT } from './declarations.mjs';

const FILE = join(ROOT, 'lib/extras/telemetry/names.ts');

/** Imports the exports of lib/extras/telemetry/names.ts. */
export async function readMetrics() {
  return await import(moduleUrl(FILE));
}

/** Returns a module that runs by itself, even if this tool runs in a test: its URL contains its imports. */
function moduleUrl(file) {
  const { outputText } = ts.transpileModule(readFileSync(file, 'utf8'), {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023 },
  });
  const code = outputText.replace(/(?<=^import [^'"]* from )'(\..*)\.js'/gm, (_, path) =>
    JSON.stringify(moduleUrl(join(dirname(file), `${path}.ts`))),
  );
  return `data:text/javascript,${encodeURIComponent(code)}`;
}
