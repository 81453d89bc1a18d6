// The site that `npm run docs` builds. Its pages are the Markdown files that GitHub shows: nothing is written twice.
import { readFileSync } from 'node:fs';
import { slug } from 'github-slugger';
import { defineConfig } from 'vitepress';
import { useRepositoryMarkdown } from './markdown.mjs';
import { copyMermaid } from './mermaid-files.mjs';
import { descriptionOf, NO_PAGES, sidebar, SITE_FOLDER, sitePathOf } from './pages.mjs';

const { name, description } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8'));

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100"><text y=".9em" font-size="90">🔒</text></svg>';

export default defineConfig({
  title: name,
  description,
  head: [['link', { rel: 'icon', href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }]],
  // For a site that is not at the root of its host, such as the pages of a project on GitHub.
  base: process.env.DOCS_BASE ?? '/',
  // The root of the repository: the README is the home page, and links to it work.
  srcDir: '../..',
  srcExclude: NO_PAGES,
  rewrites: sitePathOf,
  outDir: `../../${SITE_FOLDER}/dist`,
  cacheDir: `../../${SITE_FOLDER}/cache`,
  markdown: {
    // The anchors that GitHub makes of headings.
    anchor: { slugify: (heading) => slug(heading) },
    // GitHub has no `{.class}` either; braces in the text are text.
    attrs: { disable: true },
    config: useRepositoryMarkdown,
  },
  vite: {
    publicDir: false,
    plugins: [{ name: 'packages-of-the-site', configResolved: forgetUnseenPackages }, copyMermaid()],
    // The pages lie at the root of the repository, where Vite would look through every HTML file.
    optimizeDeps: { entries: ['tools/docs/.vitepress/theme/*.mjs'] },
    // To look for what is unused takes a third of the build, and finds nothing: what VitePress brings comes bundled.
    build: { chunkSizeWarningLimit: 3_000, rollupOptions: { treeshake: false } },
  },
  transformPageData({ relativePath, filePath, frontmatter }) {
    if (relativePath === 'index.md') frontmatter.pageClass = 'landing';
    // A wide table has the width of the outline as well.
    if (relativePath === 'index.md' || hasWideTable(filePath)) frontmatter.aside = false;
    return { description: descriptionOf(filePath) ?? description };
  },
  themeConfig: {
    nav: [
      { text: 'Start', link: '/guide/getting-started', activeMatch: '/guide/' },
      { text: 'Cookbook', link: '/guide/cookbook' },
      { text: 'All pages', link: '/contents' },
      { text: 'Reference', link: '/reference/module-options', activeMatch: '/reference/' },
      { text: 'API', link: '/api/', activeMatch: '/api/' },
      { text: 'Changelog', link: '/CHANGELOG' },
    ],
    sidebar,
    outline: [2, 3],
    search: { provider: 'local', options: { _render: renderForSearch } },
  },
});

/** The search finds a page by its description, too. The page doesn't show it. */
function renderForSearch(source, env, md) {
  const words = descriptionOf(env.relativePath);
  const html = md.render(source, env);
  return words === undefined ? html : html.replace('</h1>', () => `</h1>\n<p>${md.utils.escapeHtml(words)}</p>`);
}

/** Five columns or more, outside of code. */
function hasWideTable(file) {
  const text = readFileSync(new URL(`../../../${file}`, import.meta.url), 'utf8');
  return /^\|(?: :?-{3,}:? \|){5,}$/m.test(text);
}

/**
 * VitePress names packages of its own that the development server should bundle. Vite looks for them from the folder of
 * the pages, does not find them, and warns. The server works without their bundles.
 */
function forgetUnseenPackages({ optimizeDeps }) {
  optimizeDeps.include = optimizeDeps.include?.filter((name) => !name.startsWith('vitepress >'));
}
