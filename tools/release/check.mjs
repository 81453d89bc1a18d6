// node tools/release/check.mjs v1.2.3 [notes.md]
//   Run it in the root of the project. Fails unless the tag, package.json, package-lock.json and CHANGELOG.md agree. Writes the section of the changelog
//   to the file, and the dist-tag of npm to $GITHUB_OUTPUT.
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { readRelease } from './read-release.mjs';

const read = (name) => readFileSync(name, 'utf8');

const [tag, notesFile] = process.argv.slice(2);
if (tag === undefined) {
  console.error('Usage: node tools/release/check.mjs <tag> [file for the notes]');
  process.exit(2);
}
try {
  const { version, distTag, notes } = readRelease({
    tag,
    manifest: JSON.parse(read('package.json')),
    lock: JSON.parse(read('package-lock.json')),
    changelog: read('CHANGELOG.md'),
    repository: process.env.GITHUB_REPOSITORY,
  });
  if (notesFile !== undefined) writeFileSync(notesFile, `${notes}\n`);
  if (process.env.GITHUB_OUTPUT) appendFileSync(process.env.GITHUB_OUTPUT, `dist-tag=${distTag}\n`);
  console.log(`${version} can be published as ${distTag}`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
