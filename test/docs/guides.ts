import { readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** A fenced block of code. */
export interface Block {
  /** The file and line of its start, such as `README.md:12`. */
  readonly where: string;
  readonly language: string;
  readonly code: string;
  /** The HTML comment right before it, which a reader does not see: `<!-- run -->` makes a snippet run. */
  readonly note: string | undefined;
}

/** A table: cells as they are written. */
export interface Table {
  readonly where: string;
  readonly note: string | undefined;
  readonly header: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** The pages for users, by path from the root. */
export const GUIDES = [
  'README.md',
  'AGENTS.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name.split(sep).join('/')}`),
];

export function readGuide(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

export function blocksOf(path: string): Block[] {
  const lines = readGuide(path).split('\n');
  const blocks: Block[] = [];
  for (let index = 0; index < lines.length; index++) {
    const fence = /^( *)```(\w+)/.exec(lines[index]!);
    if (!fence) continue;
    const end = lines.indexOf(`${fence[1]}\`\`\``, index + 1);
    if (end < 0) throw new Error(`${path}:${index + 1} opens a block that nobody closes`);
    const code = lines.slice(index + 1, end).map((line) => line.slice(fence[1]!.length));
    blocks.push({
      where: `${path}:${index + 1}`,
      language: fence[2]!,
      code: code.join('\n'),
      note: noteBefore(lines, index),
    });
    index = end;
  }
  return blocks;
}

export function tablesOf(path: string): Table[] {
  const lines = readGuide(path).split('\n');
  const cells = (line: string): string[] =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
  const tables: Table[] = [];
  for (let index = 1; index < lines.length; index++) {
    if (!/^\|[\s:|-]+\|$/.test(lines[index]!)) continue;
    const rows: string[][] = [];
    for (let row = index + 1; lines[row]?.startsWith('|'); row++) rows.push(cells(lines[row]!));
    const header = cells(lines[index - 1]!);
    tables.push({ where: `${path}:${index}`, note: noteBefore(lines, index - 1), header, rows });
  }
  return tables;
}

function noteBefore(lines: readonly string[], index: number): string | undefined {
  const before = lines[index - 1] === '' ? lines[index - 2] : lines[index - 1];
  return /^<!-- (.*) -->$/.exec(before ?? '')?.[1];
}
