// Turns Markdown that was written for GitHub into a page of the site.
import { readFileSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { slug } from 'github-slugger';
import { isPage, ROOT, SITE_FOLDER, sitePathOf, titleOf } from './pages.mjs';

const { repository } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const repositoryUrl = (repository?.url ?? repository)?.replace(/^git\+/, '').replace(/\.git$/, '');

/** @param {import('vitepress').MarkdownRenderer} md */
export function useRepositoryMarkdown(md) {
  highlightOnce(md);
  renderBlocks(md);
  linkWhatApiPagesName(md);
  md.core.ruler.push('landing-sections', (state) => {
    if (state.env.relativePath === 'index.md') wrapSections(state);
  });
  md.core.ruler.push('repository-links', ({ tokens, env }) => {
    for (const { children } of tokens) if (children) followRepositoryLinks(children, env);
  });
}

/** Cached by source: the pages for the browser, for the server and for the search each render every block. */
const highlighted = new Map();

/** To highlight takes most of the time that a page does. */
function highlightOnce({ options }) {
  const { highlight } = options;
  options.highlight = (...block) => {
    const key = JSON.stringify(block);
    if (!highlighted.has(key)) highlighted.set(key, highlight(...block));
    return highlighted.get(key);
  };
}

/** The JSDoc names pages by their path, as `@see docs/guide/waiting.md`. */
function linkWhatApiPagesName(md) {
  md.core.ruler.before('normalize', 'pages-of-docs', (state) => {
    if (!state.env.realPath?.startsWith(join(ROOT, SITE_FOLDER))) return;
    state.src = state.src.replace(
      /\bdocs\/[\w/-]+\.md(#[\w-]+)?/g,
      (page, anchor = '') => `[${titleOf(page.split('#')[0])}](/${sitePathOf(page.split('#')[0])}${anchor})`,
    );
  });
}

/** The landing page is the README. Its style puts the sections beside each other, so each one is an element. */
function wrapSections({ tokens, Token }) {
  const html = (content) => Object.assign(new Token('html_block', '', 0), { content });
  const starts = tokens.flatMap(({ type, tag }, index) => (type === 'heading_open' && tag === 'h2' ? [index] : []));
  for (const index of starts.toReversed()) {
    const name = slug(tokens[index + 1].content);
    tokens.splice(index, 0, html(`</section>\n<section class="of-${name}">\n`));
  }
  tokens.unshift(html('<section class="of-start">\n'));
  tokens.push(html('</section>\n'));
}

/** Returns true for a table that a terminal prints. */
function hasColumns(text) {
  return /\S {2,}\S/.test(text);
}

function renderBlocks(md) {
  const { fence } = md.renderer.rules;
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const { info, content } = tokens[index];
    if (info.trim() === 'mermaid') return `<MermaidDiagram source="${encodeURIComponent(content)}" />\n`;
    const block = fence(tokens, index, ...rest);
    return info.trim() === 'text' && !hasColumns(content) ? `<div class="sentences">${block}</div>\n` : block;
  };
}

/**
 * Rewrites links between files. A link to a file that is no page leads to the repository, or is dropped if that is
 * unknown.
 */
function followRepositoryLinks(tokens, { realPath, path }) {
  const folder = relative(ROOT, dirname(realPath ?? path));
  for (const [index, token] of tokens.entries()) {
    const href = token.type === 'link_open' ? token.attrGet('href') : undefined;
    if (!href || /^([a-z]+:|#|\/)/i.test(href)) continue;
    const [link, anchor] = href.split('#');
    const target = posix.normalize(posix.join(folder, link));
    if (isPage(target)) token.attrSet('href', `/${sitePathOf(target)}${anchor ? `#${anchor}` : ''}`);
    else if (repositoryUrl) token.attrSet('href', `${repositoryUrl}/blob/main/${target}`);
    else {
      token.tag = 'span';
      token.attrs = null;
      tokens.slice(index).find(({ type }) => type === 'link_close').tag = 'span';
    }
  }
}
