import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** Installs the library as its author would publish it: compiled, to CommonJS for an application of ES modules. */
export async function installLibrary({ folder, isEsm }, sources) {
  const ts = createRequire(join(folder, 'package.json'))('typescript');
  const target = join(folder, 'node_modules/shop-library');
  const { outputText } = ts.transpileModule(await readFile(join(sources, 'index.ts'), 'utf8'), {
    compilerOptions: {
      target: ts.ScriptTarget.ES2022,
      module: isEsm ? ts.ModuleKind.CommonJS : ts.ModuleKind.ESNext,
      experimentalDecorators: true,
      emitDecoratorMetadata: true,
    },
  });
  const manifest = { name: 'shop-library', type: isEsm ? 'commonjs' : 'module', main: 'index.js', types: 'index.d.ts' };
  await mkdir(target);
  await writeFile(join(target, 'package.json'), JSON.stringify(manifest));
  await writeFile(join(target, 'index.js'), outputText);
  await writeFile(join(target, 'index.d.ts'), await readFile(join(sources, 'index.d.ts'), 'utf8'));
}
