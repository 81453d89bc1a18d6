import { readdir, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';

/** The maximum size of the package: bytes, and files. Raise one only for a feature that users need. */
const LIMITS = { bytes: 2_500_000, files: 200, 'docs, bytes': 560_000, 'packed, bytes': 690_000 };

/**
 * @param {string} folder the folder to pack
 * @param {string} tarball
 * @returns {Promise<string>} the sizes, to be shown. Rejects if one exceeds its limit
 */
export async function checkSize(folder, tarball) {
  const sizes = { bytes: 0, files: 0, 'docs, bytes': 0, 'packed, bytes': (await stat(tarball)).size };
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath ?? entry.path, entry.name);
    const { size } = await stat(path);
    sizes.bytes += size;
    sizes.files++;
    if (relative(folder, path).startsWith('docs')) sizes['docs, bytes'] += size;
  }
  const lines = Object.entries(sizes).map(([what, size]) => `${what}: ${size} of ${LIMITS[what]}`);
  if (Object.entries(sizes).some(([what, size]) => size > LIMITS[what])) {
    throw new Error(`The package is too large. ${lines.join('; ')}`);
  }
  return lines.join('; ');
}
