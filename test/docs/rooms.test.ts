import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';
import { readGuide, ROOT } from './guides.js';

const foldersIn = (path: string): string[] =>
  readdirSync(join(ROOT, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${path}/${name}`);

it('the tree in CONTRIBUTING.md has each folder of lib/', () => {
  const [tree] = /^```\nlib\/kernel[^]*?^```$/m.exec(readGuide('CONTRIBUTING.md'))!;
  for (const folder of foldersIn('lib')) expect(tree).toContain(`${folder}/`);
});

describe('the page about the architecture', () => {
  const page = readGuide('docs/internals/architecture.md');

  it('names each room of lib, each layer, feature and extra, and no other', () => {
    for (const room of foldersIn('lib')) expect(page).toMatch(new RegExp(`${room}\\b|\\*\\*${room.slice(4)}\\*\\*`));
    const inner = ['kernel', 'features', 'extras'].flatMap((room) => foldersIn(`lib/${room}`));
    for (const room of inner) expect(page).toContain(`\`${room.split('/')[2]}\``);
    for (const [, path] of page.matchAll(/\b(lib\/[\w/-]+\w)(?![\w.*/-])/g)) {
      expect(readdirSync(join(ROOT, path!))).not.toEqual([]);
    }
  });

  it('has each entry point in its picture', () => {
    const picture = page.slice(page.indexOf('```mermaid'), page.indexOf('An arrow means'));
    const boxes = [...picture.matchAll(/\w+\["([^"]*)"\] -->/g)].flatMap(([, text]) => text!.split(', '));
    for (const { name } of ENTRY_POINTS) expect(boxes).toContain(name);
  });
});
