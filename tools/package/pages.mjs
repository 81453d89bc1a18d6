// Pages as they are published. npm shows README without the repository, and the package does not have every page.

const PICTURE = /\.(?:svg|png|jpe?g|gif|webp)$/;
/** A mark for tests, generators or Prettier. */
const MARK = /^ *<!--[^]*?-->\n+/gm;
const FENCED = /^( *)(`{3,})[^]*?^\1\2$/gm;
/** The text before a link, the link, and the text that ends it. */
const LINKS = [/(\]\()([^)\s]+)(\))/g, /^(\[[^\]]+\]: )(\S+)()/gm, /(\b(?:src|href|srcset)=")([^"]+)(")/g];

/**
 * @param {string} text Markdown
 * @param {(link: string) => string} replace called for each link outside of code blocks
 */
export function replaceLinks(text, replace) {
  return changeProse(text, (prose) =>
    LINKS.reduce(
      (before, pattern) => before.replace(pattern, (_, start, link, end) => start + replace(link) + end),
      prose,
    ),
  );
}

/** Changes the text outside of code blocks. */
function changeProse(text, change) {
  const parts = [];
  let from = 0;
  for (const { 0: code, index } of text.matchAll(FENCED)) {
    parts.push(change(text.slice(from, index)), code);
    from = index + code.length;
  }
  return [...parts, change(text.slice(from))].join('');
}

/** @returns {{ path: string, hash: string } | undefined} where a link leads to, if to a file of the project */
export function targetOf(link, page) {
  const { protocol, pathname, hash } = new URL(link, `package:///${page}`);
  return protocol === 'package:' ? { path: decodeURIComponent(pathname.slice(1)), hash } : undefined;
}

/**
 * Prepares a page for the package. Links in README, and links to unpublished files, lead to the repository. Comments
 * and the padding of tables are dropped.
 *
 * @param {string} text
 * @param {object} of
 * @param {string} of.page its path
 * @param {ReadonlySet<string>} of.published the paths of all files
 * @param {string} [of.repository] `owner/name` on GitHub. Without it, links stay as they are
 * @param {string} of.version
 */
export function publishedPage(text, { page, published, repository, version }) {
  const narrow = changeProse(text, (prose) => prose.replace(MARK, '').replace(/^ *\|.*$/gm, withoutPadding));
  if (repository === undefined) return narrow;
  return replaceLinks(narrow, (link) => {
    const target = targetOf(link, page);
    if (target === undefined || target.path === page) return link;
    if (page !== 'README.md' && published.has(target.path)) return link;
    const place = PICTURE.test(target.path)
      ? `https://raw.githubusercontent.com/${repository}/v${version}`
      : `https://github.com/${repository}/blob/v${version}`;
    return `${place}/${target.path}${target.hash}`;
  });
}

/** @param {string} row of a table */
function withoutPadding(row) {
  return row.replace(/(?<=\S) {2,}/g, ' ').replace(/-{4,}/g, '---');
}

/**
 * @param {{ repository?: { url?: string } }} manifest `package.json`
 * @returns {string | undefined} `owner/name` on GitHub
 */
export function repositoryOf({ repository }) {
  return /github\.com[/:](?<name>[^/]+\/[^/]+?)(?:\.git)?$/.exec(repository?.url ?? '')?.groups.name;
}
