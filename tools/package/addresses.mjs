// Writes into each lock file where its packages are. npm leaves that out by the setting omit-lockfile-registry-resolved, and then has to
// ask the registry about each package before it installs it, which is most of its work.
//   node tools/package/addresses.mjs
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../../scripts/setup.mjs';

const REGISTRY = 'https://registry.npmjs.org/';

/** @returns {string} where the registry has a package, of which the lock file has a line at this path */
export function addressOf(path, { name = path.replace(/^.*node_modules\//, ''), version }) {
  return `${REGISTRY}${name}/-/${name.replace(/^@[^/]+\//, '')}-${version}.tgz`;
}

function withAddresses(lock) {
  const packages = Object.entries(lock.packages).map(([path, entry]) => {
    if (path === '') return [path, entry];
    const { name, version, resolved: _, ...more } = entry;
    return [path, { ...(name !== undefined && { name }), version, resolved: addressOf(path, entry), ...more }];
  });
  return { ...lock, packages: Object.fromEntries(packages) };
}

if (process.argv[1] === import.meta.filename) {
  const files = execFileSync('git', ['ls-files', '*package-lock.json'], { cwd: root, encoding: 'utf8' });
  for (const path of files
    .trim()
    .split('\n')
    .map((file) => join(root, file))) {
    writeFileSync(path, `${JSON.stringify(withAddresses(JSON.parse(readFileSync(path, 'utf8'))), undefined, 2)}\n`);
  }
}
