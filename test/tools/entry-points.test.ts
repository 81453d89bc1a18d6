import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';
import { root } from '../../scripts/setup.mjs';

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  exports: Record<string, object | string>;
};

describe('the entry points', () => {
  it('are the files of lib/ that lie in no room', () => {
    const files = readdirSync(join(root, 'lib')).filter((name) => name.endsWith('.ts'));
    expect(ENTRY_POINTS.map(({ source }) => source).toSorted()).toEqual(files.map((name) => `lib/${name}`).toSorted());
  });

  it.each(ENTRY_POINTS)('$specifier leads to a file of each format, which has its types beside it', (entry) => {
    expect(manifest.exports[entry.subpath]).toEqual({
      import: `./dist/esm/${entry.name}.js`,
      require: `./dist/cjs/${entry.name}.js`,
    });
  });

  it('are all that can be imported, but for package.json', () => {
    const others = Object.keys(manifest.exports).filter(
      (path) => !ENTRY_POINTS.some(({ subpath }) => subpath === path),
    );
    expect(others).toEqual(['./package.json']);
  });
});
