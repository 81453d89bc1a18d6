import { repositoryOf } from '../package/pages.mjs';

const VERSION = /^\d+\.\d+\.\d+(?<prerelease>-[0-9A-Za-z.-]+)?$/;
const HEADING = /^## \[(?<version>[^\]]+)\] - (?<date>.+)$/;
/** A run that users can repeat. */
const RUN = /`npm run chaos -- --seed \d+`/;
const DATE = /^\d{4}-\d{2}-\d{2}$/;

/**
 * Returns the release of a tag. Throws if the tag, `package.json`, `package-lock.json` and `CHANGELOG.md` disagree.
 *
 * @param {object} sources
 * @param {string} sources.tag such as `v1.2.3`
 * @param {{ version: string, repository?: { url?: string } }} sources.manifest `package.json`
 * @param {{ version: string, packages: Record<string, { version?: string }> }} sources.lock `package-lock.json`
 * @param {string} sources.changelog `CHANGELOG.md`
 * @param {string} [sources.repository] `owner/name` on GitHub, if known. It must match `package.json`
 * @returns {{ version: string, distTag: 'latest' | 'next', notes: string }} `notes`: the section of the changelog
 */
export function readRelease({ tag, manifest, lock, changelog, repository }) {
  const { version } = manifest;
  const match = VERSION.exec(version);
  if (match === null) throw new Error(`package.json has the version "${version}", which is no semantic version.`);
  if (tag !== `v${version}`) throw new Error(`The tag is ${tag}, but package.json has the version ${version}.`);
  for (const [place, locked] of [
    ['version', lock.version],
    ['packages[""].version', lock.packages[''].version],
  ]) {
    if (locked !== version) throw new Error(`package-lock.json has the ${place} ${locked}: run npm install.`);
  }
  checkRepository(manifest, repository);
  return { version, distTag: match.groups.prerelease ? 'next' : 'latest', notes: notesOf(changelog, version) };
}

/** Links of README lead there, and npm refuses a provenance statement of another repository than the package names. */
function checkRepository(manifest, repository) {
  const named = repositoryOf(manifest);
  if (named !== undefined && named.toLowerCase() === (repository ?? named).toLowerCase()) return;
  const { url = '' } = manifest.repository ?? {};
  const wanted = `git+https://github.com/${repository ?? '<owner>/<name>'}.git`;
  throw new Error(`package.json has to name the repository: "${wanted}", not "${url}".`);
}

function notesOf(changelog, version) {
  const lines = changelog.split('\n');
  const start = lines.findIndex((line) => HEADING.exec(line)?.groups.version === version);
  if (start === -1) throw new Error(`CHANGELOG.md has no heading "## [${version}] - <date>".`);
  const { date } = HEADING.exec(lines[start]).groups;
  if (!isDate(date)) throw new Error(`CHANGELOG.md dates ${version} as "${date}", not as a day such as 2026-01-31.`);
  const length = lines.slice(start + 1).findIndex((line) => line.startsWith('## '));
  const notes = lines.slice(start + 1, length === -1 ? undefined : start + 1 + length);
  const text = notes.join('\n').trim();
  if (!notes.some((line) => line.trim() !== '' && !line.startsWith('#'))) {
    throw new Error(`CHANGELOG.md says nothing about ${version}.`);
  }
  if (!RUN.test(text)) {
    throw new Error(
      `CHANGELOG.md names no run for ${version}: add "Checked with \`npm run chaos -- --seed <seed>\`.".`,
    );
  }
  return text;
}

function isDate(text) {
  return DATE.test(text) && new Date(text).toJSON()?.startsWith(text) === true;
}
