import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';
import { readGuide, ROOT, tablesOf } from './guides.js';

const foldersIn = (path: string): string[] =>
  readdirSync(join(ROOT, path), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${path}/${name}`);

/** Rooms of `lib/`, and the rooms in them. */
const ROOMS = foldersIn('lib').flatMap((room) => [room, ...foldersIn(room)]);

/** The tree of CONTRIBUTING.md: names of folders, indented, with what they are behind them. */
function mapOf(page: string): string[] {
  const [, tree] = /^```\n(lib\/core\/[^]*?)^```$/m.exec(readGuide(page)) ?? [];
  const shown: string[] = [];
  let parent = '';
  for (const line of tree!.split('\n')) {
    const [, indent, text] = /^( *)((?:[\w.-]+\/)+(?: +(?:[\w.-]+\/)+)*)/.exec(line) ?? [];
    if (text === undefined || indent!.length > 2) continue;
    const names = text
      .trim()
      .split(/ +/)
      .map((name) => name.replace(/\/$/, ''));
    if (indent === '') parent = names[0]!;
    shown.push(...(indent === '' ? names : names.map((name) => `${parent}/${name}`)));
  }
  return shown;
}

describe('the map of CONTRIBUTING.md', () => {
  const shown = mapOf('CONTRIBUTING.md');

  it('has each room of lib, and the rooms in it', () => {
    expect(shown.filter((path) => path.startsWith('lib/')).toSorted()).toEqual(ROOMS.toSorted());
  });

  it('has the other folders of the repository', () => {
    for (const path of shown) expect(readdirSync(join(ROOT, path))).not.toEqual([]);
    expect(shown).toEqual(expect.arrayContaining(['sample-app', 'test', 'scripts', 'tools', 'docs']));
  });

  it('has the file of each entry point', () => {
    const map = readGuide('CONTRIBUTING.md').replaceAll(/\s+/g, ' ');
    for (const { source } of ENTRY_POINTS) expect(map).toContain(source);
  });

  it('and its table has each folder of test', () => {
    const table = tablesOf('CONTRIBUTING.md').find(({ header }) => header[0] === 'Folder')!;
    const named = table.rows.map(([folders]) => folders).join(' ');
    for (const folder of foldersIn('test')) expect(named).toContain(`\`${folder}`);
  });
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
