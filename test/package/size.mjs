import { readdir, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';

/** The maximum size of the package: bytes, and files. Raise one only for a feature that users need. */
const LIMITS = { 'code, bytes': 3_000_000, 'code, files': 150, 'docs, bytes': 600_000, 'packed, bytes': 760_000 };

/**
 * @param {string} folder the folder to pack
 * @param {string} tarball
 * @returns {Promise<string>} the sizes, to be shown. Rejects if one exceeds its limit
 */
export async function checkSize(folder, tarball) {
  const sizes = { 'code, bytes': 0, 'code, files': 0, 'docs, bytes': 0, 'packed, bytes': (await stat(tarball)).size };
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath ?? entry.path, entry.name);
    const isPage = relative(folder, path).startsWith('docs');
    sizes[isPage ? 'docs, bytes' : 'code, bytes'] += (await stat(path)).size;
    if (!isPage) sizes['code, files']++;
  }
  const lines = Object.entries(sizes).map(([what, size]) => `${what}: ${size} of ${LIMITS[what]}`);
  if (Object.entries(sizes).some(([what, size]) => size > LIMITS[what])) {
    throw new Error(`The package is too large. ${lines.join('; ')}`);
  }
  return lines.join('; ');
}
