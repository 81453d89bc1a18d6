// Most packages of a stack are installed already, in the project or in another stack. Links to their files take a tenth of the time in
// which npm unpacks them again.
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';

/** npm's record of the installed packages, which it trusts while nothing in `node_modules` is newer. */
const INSTALLED = 'node_modules/.package-lock.json';

/**
 * Links packages of the lock file that are installed elsewhere, known by their hashes, into a folder without packages.
 * npm installs the rest, and treats these as its own.
 *
 * @param {string} folder
 * @param {readonly string[]} others folders that may have packages
 * @returns {boolean} whether npm has nothing left to install
 */
export function sharePackages(folder, others) {
  const { packages, ...lock } = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8'));
  const places = placesOf(others);
  // Left by a run that was interrupted.
  rmSync(join(folder, 'node_modules'), { recursive: true, force: true });
  const shared = {};
  const left = [];
  // Parents first: a package may contain others.
  for (const path of Object.keys(packages)
    .filter((each) => each !== '')
    .toSorted()) {
    const entry = packages[path];
    const place = places.get(entry.integrity);
    const [outer] = path.split(/\/node_modules\/(?=(?:@[^/]+\/)?[^/]+$)/);
    if (place === undefined || (outer !== path && !(outer in shared))) left.push(entry);
    else {
      linkFolder(place, join(folder, path));
      linkPrograms(folder, path, entry);
      shared[path] = entry;
    }
  }
  if (Object.keys(shared).length > 0) {
    writeFileSync(join(folder, INSTALLED), JSON.stringify({ ...lock, packages: shared }));
  }
  return left.every(isOfAnotherPlatform);
}

/** Returns the folder of each package, by its hash. */
function placesOf(folders) {
  const places = new Map();
  for (const folder of folders) {
    for (const [path, { integrity }] of Object.entries(installedIn(folder) ?? {})) {
      const place = join(folder, path);
      if (integrity !== undefined && !places.has(integrity) && existsSync(place)) places.set(integrity, place);
    }
  }
  return places;
}

/** The packages that npm has installed in a folder, by path, as {@link packagesOf} gives them. */
export function installedIn(folder) {
  return packagesOf(join(folder, INSTALLED));
}

/** Returns the packages of a lock file, by path. `undefined` if it does not exist, or npm is writing it. */
export function packagesOf(file) {
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function linkFolder(from, to) {
  mkdirSync(to, { recursive: true });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (!entry.isDirectory()) linkFile(source, target);
    // Packages in a package have lines of their own in the lock file.
    else if (entry.name !== 'node_modules') linkFolder(source, target);
  }
}

function linkFile(source, target) {
  try {
    linkSync(source, target);
  } catch (error) {
    if (!['EXDEV', 'EPERM', 'EMLINK'].includes(error.code)) throw error;
    copyFileSync(source, target);
  }
}

/** As npm does, which installs a package again whose programs are not there. */
function linkPrograms(folder, path, { bin = {} }) {
  const programs = join(folder, path.replace(/node_modules\/(?:@[^/]+\/)?[^/]+$/, 'node_modules/.bin'));
  for (const [name, file] of Object.entries(bin)) {
    mkdirSync(programs, { recursive: true });
    const link = join(programs, name);
    if (!existsSync(link)) symlinkSync(relative(dirname(link), join(folder, path, file)), link);
  }
}

function isOfAnotherPlatform({ optional = false, os, cpu, libc }) {
  const lacks = (wanted = [], here) =>
    wanted.length > 0 && !wanted.some((each) => each === here || each.startsWith('!'));
  return optional && (lacks(os, process.platform) || lacks(cpu, process.arch) || lacks(libc, libcHere()));
}

function libcHere() {
  return process.report.getReport().header.glibcVersionRuntime === undefined ? 'musl' : 'glibc';
}
