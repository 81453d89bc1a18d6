import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../../scripts/setup.mjs';
import { repositoryFiles } from '../support/process/repository-files.js';

type Dependencies = Record<string, string>;
interface Manifest {
  dependencies?: Dependencies;
  devDependencies?: Dependencies;
}
interface Lock {
  lockfileVersion: number;
  packages: Record<string, Manifest & { version?: string; resolved?: string; integrity?: string; link?: boolean }>;
}

const REGISTRY = 'https://registry.npmjs.org/';
const read = <T>(path: string) => JSON.parse(readFileSync(join(root, path), 'utf8')) as T;

/** Each folder with dependencies of its own: the project, and the stacks that `npm ci` does not install. */
const stacks = repositoryFiles('*package.json')
  .map((path) => [dirname(path), read<Manifest>(path)] as const)
  .filter(([, { dependencies, devDependencies }]) => dependencies !== undefined || devDependencies !== undefined);

it('the test finds the project and the stacks', () => {
  expect(stacks.map(([folder]) => folder)).toEqual(
    expect.arrayContaining([
      '.',
      'tools/bench',
      'tools/docs',
      'test/stacks/databases',
      'test/package/consumers/nest11-cjs-jest',
    ]),
  );
});

describe.each(stacks)('the lock file of %s', (folder, { dependencies, devDependencies }) => {
  const lock = () => read<Lock>(join(folder, 'package-lock.json'));

  it('is of this package.json', () => {
    const locked = lock().packages['']!;
    expect({ ...locked.dependencies }).toEqual({ ...dependencies });
    expect({ ...locked.devDependencies }).toEqual({ ...devDependencies });
  });

  it('has each package with its hash, from the public registry', () => {
    const { '': _project, ...packages } = lock().packages;
    const wrong = Object.entries(packages).filter(
      ([, { version, integrity = '', resolved = REGISTRY }]) =>
        version === undefined || !integrity.startsWith('sha512-') || !resolved.startsWith(REGISTRY),
    );
    expect(wrong).toEqual([]);
  });
});
