// Which Markdown files are pages of the site, under which path, and in which order the sidebar lists them.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** What the build writes, ignored by git: the API reference in Markdown, the cache, the site. */
export const SITE_FOLDER = 'site';

const ROOT_PAGES = ['README', 'CHANGELOG', 'CONTRIBUTING', 'SECURITY'];

/** Globs of the Markdown files that are not pages. */
export const NO_PAGES = [`!(${ROOT_PAGES.join('|')}).md`, '!(docs|site)/**/*', 'site/!(api)/**/*'];

/** The same rule for one file: some at the root, those of docs/, and the API. */
export function isPage(file) {
  return file.endsWith('.md') && (/^(docs|site\/api)\//.test(file) || ROOT_PAGES.includes(file.slice(0, -3)));
}

/** The rooms of docs/. Pages that are not named here follow, by their file names. */
const ROOMS = [
  {
    folder: 'guide',
    title: 'Guide',
    first: ['getting-started', 'lock-service', 'decorators', 'request-handlers', 'choosing-a-mode', 'waiting'],
  },
  { folder: 'reference', title: 'Reference', first: ['module-options', 'lock-options', 'errors', 'events'] },
  { folder: 'operations', title: 'Operations', first: ['topologies', 'reliability'] },
  { folder: 'internals', title: 'Internals', first: ['architecture', 'protocol', 'glossary'] },
];

/** `docs/guide/cron.md` is the page `guide/cron.md`; a README is the first page of its folder. */
export function sitePathOf(file) {
  return file
    .replace(/^docs\//, '')
    .replace(/^site\/api\//, 'api/')
    .replace(/(^|\/)README\.md$/, '$1index.md');
}

/** The pages of a room, in their order. */
function pagesOf({ folder, first }) {
  const path = join(ROOT, 'docs', folder);
  const names = existsSync(path) ? readdirSync(path).filter((name) => name.endsWith('.md')) : [];
  const placeOf = (name) => {
    const place = first.indexOf(name.replace('.md', ''));
    return place < 0 ? first.length : place;
  };
  return names
    .toSorted((a, b) => placeOf(a) - placeOf(b) || (a < b ? -1 : 1))
    .map((name) => ({
      text: titleOf(join(path, name)),
      link: `/${sitePathOf(`docs/${folder}/${name}`).replace(/(index)?\.md$/, '')}`,
    }));
}

function titleOf(file) {
  const heading = /^# (.*)$/m.exec(readFileSync(file, 'utf8'));
  if (!heading) throw new Error(`${file} has no title: it must begin with "# "`);
  return heading[1].replaceAll('`', '');
}

const rooms = ROOMS.map((room) => ({ ...room, pages: pagesOf(room) }));

export function firstPageOf(folder) {
  return rooms.find((room) => room.folder === folder)?.pages[0]?.link ?? '/';
}

/** TypeDoc writes it beside the pages of the API. */
function apiSidebar() {
  const file = join(ROOT, SITE_FOLDER, 'api/typedoc-sidebar.json');
  if (!existsSync(file)) throw new Error(`${file} is missing: run "npm run docs", which writes it`);
  return JSON.parse(readFileSync(file, 'utf8'));
}

export const sidebar = {
  '/api/': [{ text: 'API', link: '/api/', items: apiSidebar() }],
  '/': [
    { text: 'Start', items: [{ text: 'Overview', link: '/' }] },
    ...rooms
      .filter(({ pages }) => pages.length > 0)
      .map(({ title, folder, pages }) => ({ text: title, items: pages, collapsed: folder === 'internals' })),
    {
      text: 'Project',
      collapsed: true,
      items: [
        { text: 'API', link: '/api/' },
        { text: 'Changelog', link: '/CHANGELOG' },
        { text: 'Contributing', link: '/CONTRIBUTING' },
      ],
    },
  ],
};
