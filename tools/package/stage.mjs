// npm run stage   makes dist/package, the folder that is published, of what `files` in package.json names. Needs dist/
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { publishedPage, repositoryOf } from './pages.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

/**
 * @param {string} folder is created again
 * @param {string} [repository] `owner/name` on GitHub, for links. Without it they stay as they are
 */
export function stage(folder, repository) {
  const published = publishedPaths();
  const missing = missingCode(published);
  if (missing.length > 0) throw new Error(`Run npm run build first: there is no ${missing[0]}`);
  rmSync(folder, { recursive: true, force: true });
  for (const path of published) {
    const target = join(folder, path);
    mkdirSync(dirname(target), { recursive: true });
    if (path === 'package.json') writeFileSync(target, publishedManifest());
    else if (path.endsWith('.md')) {
      const text = readFileSync(join(root, path), 'utf8');
      const of = { page: path, published, repository, version: manifest.version };
      writeFileSync(target, publishedPage(text, of));
    } else if (path.endsWith('.json')) {
      // Nobody reads a dashboard: without its indentation, it has half the size.
      writeFileSync(target, JSON.stringify(JSON.parse(readFileSync(join(root, path), 'utf8'))));
    } else cpSync(join(root, path), target);
  }
}

/** @returns {ReadonlySet<string>} what npm would pack */
export function publishedPaths() {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const output = execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const [{ files }] = JSON.parse(output);
  return new Set(files.map(({ path }) => path));
}

/**
 * @param {ReadonlySet<string>} published
 * @returns {string[]} what package.json exports or runs, and is not there
 */
export function missingCode(published) {
  const pathsOf = (target) => (typeof target === 'string' ? [target] : Object.values(target).flatMap(pathsOf));
  const paths = [manifest.exports, manifest.bin].flatMap(pathsOf).map((path) => path.replace(/^\.\//, ''));
  return paths.filter((path) => !published.has(path));
}

/** `private` is there so that the root, whose links lead nowhere on npm, is not published by mistake. */
function publishedManifest() {
  const { private: _private, scripts: _scripts, devDependencies: _devDependencies, ...published } = manifest;
  return `${JSON.stringify(published, null, 2)}\n`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const repository = repositoryOf(manifest);
  try {
    stage(join(root, 'dist/package'), repository);
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
  if (repository === undefined) {
    console.warn(
      'package.json names no repository on GitHub: links of dist/package lead to files that it does not have.',
    );
  }
}
