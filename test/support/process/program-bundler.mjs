// Makes JavaScript files, each of a TypeScript program and of all that it imports: see program.ts. Reads from stdin, as JSON, the
// path of the program, and for each variant of it where to write it, and which file of dist/modules has which text there.
import { readFileSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { context } from 'esbuild';
import { compileTypescript } from './compile-typescript.mjs';
import { publishFile } from './publish-file.mjs';

/** Optional packages of Nest. They would load a second Nest, outside of the bundle. */
const EXTERNAL = [
  '@nestjs/microservices',
  '@nestjs/websockets',
  '@nestjs/platform-*',
  'class-validator',
  'class-transformer',
];
/** The package, each of its sources as a module. */
const MODULES = fileURLToPath(new URL('../../../dist/modules', import.meta.url));
/** Nest needs the types that the compiler of Jest leaves behind these, and esbuild does not. */
const DECORATOR = /^\s*@[A-Z]\w*\(/m;

const { main, variants } = JSON.parse(readFileSync(0, 'utf8'));
let replaced;

const sources = {
  name: 'sources',
  setup({ onLoad }) {
    onLoad({ filter: /\.(ts|mjs|js)$/ }, async ({ path }) => {
      if (path.includes('/node_modules/')) return undefined;
      const text = path === replaced?.file ? replaced.text : readFileSync(path, 'utf8');
      const isDecorated = path.endsWith('.ts') && DECORATOR.test(text);
      const code = isDecorated ? await compileTypescript(text, path) : text;
      return {
        // In one file, all modules would be where that is.
        contents: code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(path).href)),
        loader: path.endsWith('.ts') && !isDecorated ? 'ts' : 'js',
      };
    });
  },
};

const bundler = await context({
  entryPoints: [main],
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node20',
  external: EXTERNAL,
  // The published files are few, and none can be replaced alone.
  alias: variants.some(({ file }) => file) ? { 'nestjs-redis-lock': MODULES } : {},
  // Without the paths of tsconfig.json: the package is what is built.
  tsconfigRaw: {},
  // For CommonJS modules in an ES module.
  banner: {
    js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
  },
  // Errors and providers are known by the names of their classes.
  keepNames: true,
  metafile: true,
  write: false,
  logLevel: 'error',
  plugins: [sources],
});
for (replaced of variants) {
  const { outputFiles, metafile } = await bundler.rebuild();
  const isLoaded = Object.keys(metafile.inputs).some((input) => replaced.file?.endsWith(`/${input}`));
  if (replaced.file && !isLoaded) throw new Error(`${main} loads nothing from ${replaced.file}`);
  publishFile(replaced.program, outputFiles[0].contents);
}
await bundler.dispose();
