import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { repositoryFiles } from '../support/process/repository-files.js';
import { GUIDES, readGuide, ROOT } from './guides.js';

const PICTURE = /!\[([^\]]*)\]\(([^)\s]+\.(?:svg|png))\)/g;

/** Each picture that a page shows: its path, and what is said of it to a reader who does not see it. */
const shown = GUIDES.flatMap((page) =>
  [...readGuide(page).matchAll(PICTURE)].map(([, alt, link]) => ({
    page,
    alt: alt!,
    path: join(dirname(page), link!),
  })),
);
const drawn = repositoryFiles().filter((file) => /^docs\/.*\.svg$/.test(file));

it.each(shown)('$page shows $path, and says in words what is seen', ({ path, alt }) => {
  expect(existsSync(join(ROOT, path))).toBe(true);
  expect(alt.split(' ').length).toBeGreaterThanOrEqual(8);
});

describe.each(drawn)('%s', (path) => {
  const svg = readFileSync(join(ROOT, path), 'utf8');

  it('is on a page, and small', () => {
    expect(shown.map((picture) => picture.path)).toContain(path);
    expect(Buffer.byteLength(svg)).toBeLessThan(6_000);
  });

  it('reads on a light page and on a dark one: it has a ground of its own, and no color of the page', () => {
    const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg)!;
    expect(svg).toContain(`<rect x="0.5" y="0.5" width="${Number(width) - 1}" height="${Number(height) - 1}" rx="8"`);
    expect(svg).not.toContain('currentColor');
  });

  it('has a title, and loads nothing', () => {
    expect(svg).toMatch(/<title[^>]*>.{20,}<\/title>/);
    expect(svg).not.toMatch(/href|@import|url\((?!#)/);
  });
});
