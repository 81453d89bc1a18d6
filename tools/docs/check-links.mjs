import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { Parser } from 'htmlparser2';

/**
 * Follows every link of a built site to its file and its anchor. VitePress checks only pages, and crawlers that check
 * anchors miss links to pages that they have already seen. Other hosts are not requested: they may be down.
 *
 * @param {string} site the folder of the built site
 * @param {string} [base] the path that the site is served under
 * @returns {{ followed: number, broken: string[] }} the number of links, and the broken ones
 */
export function checkLinks(site, base = '/') {
  const files = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.html'));
  const pages = new Map(files.map((file) => [join(site, file), readPage(join(site, file))]));
  const broken = [];
  let followed = 0;
  for (const [file, { links }] of pages) {
    const path = relative(site, file).split(sep).join('/');
    for (const link of links) {
      const url = new URL(link, `http://site${base}${path}`);
      if (url.host !== 'site') continue;
      followed++;
      if (!leadsSomewhere(url)) broken.push(`${link} on ${path}`);
    }
  }
  return { followed, broken };

  function leadsSomewhere({ pathname, hash }) {
    if (!pathname.startsWith(base)) return false;
    const path = decodeURIComponent(pathname.slice(base.length));
    const target = join(site, path === '' || path.endsWith('/') ? `${path}index.html` : path);
    const anchor = decodeURIComponent(hash.slice(1));
    if (anchor !== '') return pages.get(target)?.anchors.has(anchor) === true;
    return pages.has(target) || (existsSync(target) && statSync(target).isFile());
  }
}

function readPage(file) {
  const links = new Set();
  const anchors = new Set();
  const parser = new Parser({
    onopentag(name, { href, src, id }) {
      for (const link of [href, src]) if (link !== undefined) links.add(link);
      if (id !== undefined) anchors.add(id);
    },
  });
  parser.end(readFileSync(file, 'utf8'));
  return { links, anchors };
}
