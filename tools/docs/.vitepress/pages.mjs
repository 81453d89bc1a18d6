// Which Markdown files are pages of the site, under which path, and in which order the sidebar lists them.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** What the build writes, ignored by git: the API reference in Markdown, the cache, the site. */
export const SITE_FOLDER = 'site';

const ROOT_PAGES = ['README', 'CHANGELOG', 'CONTRIBUTING', 'SECURITY'];

/** Globs of the Markdown files that are not pages. */
export const NO_PAGES = [`!(${ROOT_PAGES.join('|')}).md`, '!(docs|site)/**/*', 'site/!(api)/**/*'];

/** The same rule for one file: some at the root, those of docs/, and the API. */
export function isPage(file) {
  return file.endsWith('.md') && (/^(docs|site\/api)\//.test(file) || ROOT_PAGES.includes(file.slice(0, -3)));
}

const ROOMS = [
  { folder: 'guide', title: 'Guide' },
  { folder: 'reference', title: 'Reference' },
  { folder: 'operations', title: 'Operations' },
  { folder: 'migration', title: 'Migration' },
  { folder: 'internals', title: 'Internals' },
];

/** What the README calls the pages, in its order. The last link counts: that is the one in the list of the guides. */
const NAMES = namesInReadme();

function namesInReadme() {
  const names = new Map();
  for (const [, name, file] of readFileSync(join(ROOT, 'README.md'), 'utf8').matchAll(
    /\[([^\]]+)\]\((docs\/[^)#]+)\)/g,
  )) {
    names.delete(file);
    names.set(file, name[0].toUpperCase() + name.slice(1));
  }
  return names;
}

/** `docs/guide/cron.md` is the page `guide/cron.md`; a README is the first page of its folder. */
export function sitePathOf(file) {
  return file
    .replace(/^docs\//, '')
    .replace(/^site\/api\//, 'api/')
    .replace(/(^|\/)README\.md$/, '$1index.md');
}

/** The pages of a room. Those that the README does not link come last, by their file names. */
function pagesOf({ folder }) {
  const path = join(ROOT, 'docs', folder);
  const names = existsSync(path)
    ? readdirSync(path, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.md'))
    : [];
  const files = names.map((name) => `docs/${folder}/${name.split(sep).join('/')}`).toSorted();
  const order = [...NAMES.keys()];
  const placeOf = (file) => (NAMES.has(file) ? order.indexOf(file) : order.length);
  return files
    .toSorted((a, b) => placeOf(a) - placeOf(b))
    .map((file) => ({
      text: NAMES.get(file) ?? titleOf(file),
      link: `/${sitePathOf(file).replace(/(index)?\.md$/, '')}`,
    }));
}

/** @param {string} file a page, by its path from the root */
export function titleOf(file) {
  const heading = /^# (.*)$/m.exec(readFileSync(join(ROOT, file), 'utf8'));
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
