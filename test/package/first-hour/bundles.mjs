// The application as one file, started where no package is: its console is in the file, too.
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { checkServed, checkStarted } from './started.mjs';

/** Packages that Nest loads only if an application has them. */
const NOT_INSTALLED = [
  '@nestjs/microservices',
  '@nestjs/microservices/*',
  '@nestjs/websockets',
  '@nestjs/websockets/*',
  'class-transformer',
  'class-transformer/*',
  'class-validator',
];

/** As Nest's page about serverless functions says. */
const WEBPACK = `module.exports = (options, webpack) => {
  const notInstalled = ${JSON.stringify(NOT_INSTALLED.filter((name) => !name.endsWith('*')))};
  const checkResource = (resource) => notInstalled.some((name) => resource === name || resource.startsWith(name + '/'));
  // \`nest start\` has checked the types.
  const plugins = options.plugins.filter(({ constructor }) => constructor.name !== 'ForkTsCheckerWebpackPlugin');
  return { ...options, externals: [], plugins: [...plugins, new webpack.IgnorePlugin({ checkResource })] };
};
`;

/** By the CLI: `nest start`, and what it has built alone. It leaves one file of all that was built. */
export async function checkWebpack(application) {
  const { folder } = application;
  await writeFile(join(folder, 'webpack.config.js'), WEBPACK);
  await checkStarted(application, 'webpack');
  await elsewhere((place) => copyFile(join(folder, 'dist/main.js'), place), 'main.js', application);
}

/** A file of the format that the application has. */
export async function checkEsbuild(application) {
  const { folder, isEsm } = application;
  const banner =
    "import { createRequire as toRequire } from 'node:module'; const require = toRequire(import.meta.url);";
  const bundle = (outfile) =>
    build({
      entryPoints: [join(folder, 'dist/main.js')],
      outfile,
      bundle: true,
      platform: 'node',
      external: NOT_INSTALLED,
      logLevel: 'error',
      ...(isEsm ? { format: 'esm', banner: { js: banner } } : { format: 'cjs' }),
    });
  await elsewhere(bundle, isEsm ? 'main.mjs' : 'main.cjs', application);
}

async function elsewhere(write, name, { env }) {
  const folder = await mkdtemp(join(tmpdir(), 'nestjs-redis-lock-bundle-'));
  try {
    await write(join(folder, name));
    await checkServed([name], { folder, env });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
