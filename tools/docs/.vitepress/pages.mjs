// Which Markdown files are pages of the site, under which path, and in which order the sidebar lists them.
import { existsSync, readFileSync } from 'node:fs';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** The output of the build, ignored by git: the API reference in Markdown, the cache, the site. */
export const SITE_FOLDER = 'site';

const ROOT_PAGES = ['README', 'CHANGELOG', 'CONTRIBUTING', 'SECURITY'];

/** Globs of the Markdown files that are not pages. */
export const NO_PAGES = [`!(${ROOT_PAGES.join('|')}).md`, '!(docs|site)/**/*', 'site/!(api)/**/*'];

/** Returns true for the same files: some at the root, docs/, and the API. */
export function isPage(file) {
  return file.endsWith('.md') && (/^(docs|site\/api)\//.test(file) || ROOT_PAGES.includes(file.slice(0, -3)));
}

/** `docs/guide/cron.md` is the page `guide/cron.md`; a README is the first page of its folder. */
export function sitePathOf(file) {
  return file
    .replace(/^docs\//, '')
    .replace(/^site\/api\//, 'api/')
    .replace(/(^|\/)README\.md$/, '$1index.md');
}

/** @param {string} file a page, by its path from the root */
export function titleOf(file) {
  const heading = /^# (.*)$/m.exec(readFileSync(join(ROOT, file), 'utf8'));
  if (!heading) throw new Error(`${file} has no title: it must begin with "# "`);
  return heading[1].replaceAll('`', '');
}

const CONTENTS = 'docs/contents.md';
/** So many are open in the side bar, and so is the one of the page. All others are one line each. */
const OPEN_GROUPS = 1;

/** The groups of the list of all pages, in its order: a heading, and an entry per page below. */
const groups = readFileSync(join(ROOT, CONTENTS), 'utf8')
  .split(/^## /m)
  .slice(1)
  .map((group) => ({
    text: group.split('\n')[0],
    entries: [...group.matchAll(/^- \[([^\]]+)\]\(([^)#]+)\)(?:: ((?:.|\n {2})*))?/gm)].map(
      ([, text, link, words]) => ({
        text,
        file: posix.normalize(posix.join(posix.dirname(CONTENTS), link)),
        words: words?.replaceAll(/\s+/g, ' '),
      }),
    ),
  }));

/**
 * Returns what the list of all pages says about a page: search engines show it, and the search of the site finds it.
 *
 * @param {string} file a page, by its path from the root
 * @returns {string | undefined}
 */
export function descriptionOf(file) {
  const entry = groups.flatMap(({ entries }) => entries).find((each) => each.file === file);
  return entry?.words && `${entry.text}: ${entry.words}`;
}

/** @param {string} file a page, by its path from the root */
function linkTo(file) {
  return `/${sitePathOf(file).replace(/(index)?\.md$/, '')}`;
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
    { text: 'Overview', items: [{ text: 'What it is', link: '/' }] },
    ...groups.map(({ text, entries }, index) => ({
      text,
      items: entries.map((entry) => ({ text: entry.text, link: linkTo(entry.file) })),
      collapsed: index >= OPEN_GROUPS,
    })),
    { text: 'API', link: '/api/' },
  ],
};
