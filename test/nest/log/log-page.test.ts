import { readdirSync, readFileSync } from 'node:fs';
import { slug } from 'github-slugger';

const ROOT = new URL('../../../', import.meta.url);

/** The sections of the page. */
function sections(): Set<string> {
  const page = readFileSync(new URL('docs/operations/logs.md', ROOT), 'utf8');
  return new Set([...page.matchAll(/^## (.*)$/gm)].map(([, title]) => slug(title!)));
}

describe('the page on the log', () => {
  const rooms = ['lib/nest/log/', 'lib/features/once/nest/'].map((room) => new URL(room, ROOT));
  const files = rooms.flatMap((room) => readdirSync(room).map((file) => new URL(file, room)));
  const namedHere = files.flatMap((file) => {
    const code = readFileSync(file, 'utf8');
    return [...code.matchAll(/\bsee\('([^']+)'\)/g)].map(([, section]) => section!);
  });
  // lib/redis knows no log: it passes the section on.
  const quarantine = readFileSync(new URL('lib/redis/script/restart-quarantine.ts', ROOT), 'utf8');
  const passedOn = [...quarantine.matchAll(/^ +'([a-z-]+)',$/gm)].map(([, section]) => section!);
  const named = [...namedHere, ...passedOn];

  it('has each section that a line names', () => {
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((section) => !sections().has(section))).toEqual([]);
  });

  it('has no section that no line names', () => {
    expect([...sections()].filter((section) => !named.includes(section))).toEqual([]);
  });
});
