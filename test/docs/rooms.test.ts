import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';
import { readGuide, ROOT } from './guides.js';

const foldersIn = (path: string): string[] =>
  readdirSync(join(ROOT, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${path}/${name}`);

it('the tree in CONTRIBUTING.md has each folder of lib/', () => {
  const [tree] = /^```\nlib\/core[^]*?^```$/m.exec(readGuide('CONTRIBUTING.md'))!;
  for (const folder of foldersIn('lib')) expect(tree).toContain(`${folder}/`);
});

describe('the page about the architecture', () => {
  const page = readGuide('docs/internals/architecture.md');

  it('names each room of lib, each room of core, and no other', () => {
    for (const room of foldersIn('lib')) expect(page).toMatch(new RegExp(`${room}\\b|\`${room.slice(4)}\``));
    for (const room of foldersIn('lib/core')) expect(page).toContain(`\`${room.slice('lib/core/'.length)}\``);
    for (const [, path] of page.matchAll(/\b(lib\/[\w/-]+\w)(?![\w.-])/g)) {
      expect(readdirSync(join(ROOT, path!))).not.toEqual([]);
    }
  });

  it('has each entry point in its picture', () => {
    const picture = page.slice(page.indexOf('```mermaid'), page.indexOf('An arrow means'));
    const boxes = [...picture.matchAll(/\w+\["([^"]*)"\] -->/g)].flatMap(([, text]) => text!.split(', '));
    for (const { name } of ENTRY_POINTS) expect(boxes).toContain(name);
  });
});
