import GithubSlugger from 'github-slugger';
import { replaceLinks, targetOf } from '../../tools/package/pages.mjs';

/**
 * Follows the links of packed pages, and pages named in code: `docs/guide/waiting.md#who-is-next` in JSDoc or in a
 * message. Skips other hosts.
 *
 * @param {ReadonlyMap<string, string>} files the text of each packed file, by path from the root of the package
 * @returns {{ followed: number, broken: string[] }} the number of links, and the broken ones
 */
export function followPackedLinks(files) {
  const links = [...files].flatMap(([path, text]) => {
    const targets = path.endsWith('.md') ? linksOf(text, path) : /\.[cm]?[jt]s$/.test(path) ? pagesNamedIn(text) : [];
    return targets.map((target) => ({ path, target }));
  });
  const broken = links.filter(({ target }) => !leadsSomewhere(target, files));
  return { followed: links.length, broken: broken.map(({ path, target }) => `${path}: ${target}`) };
}

function linksOf(text, page) {
  const links = [];
  replaceLinks(text, (link) => {
    links.push(link);
    return link;
  });
  const targets = links.map((link) => targetOf(link, page)).filter((target) => target !== undefined);
  return targets.map(({ path, hash }) => path + hash);
}

function pagesNamedIn(text) {
  return [...text.matchAll(/(?<![\w/.-])docs\/[\w/-]+\.md(?:#[\w-]+)?/g)].map(([target]) => target);
}

function leadsSomewhere(target, files) {
  const [path, anchor] = target.split('#');
  const text = files.get(path);
  if (text === undefined || anchor === undefined) return text !== undefined;
  const slugger = new GithubSlugger();
  return [...withoutCode(text).matchAll(/^#+ (.*)$/gm)].some(([, heading]) => slugger.slug(heading) === anchor);
}

function withoutCode(text) {
  return text.replace(/^( *)(`{3,})[^]*?^\1\2$/gm, '');
}
