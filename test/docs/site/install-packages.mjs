// Once before the tests of this folder, which build the site.
import { join } from 'node:path';
import { root } from '../../../scripts/setup.mjs';
import { ensurePackages } from '../../../scripts/setup/packages.mjs';

export default () => ensurePackages(join(root, 'tools/docs'), [root]);
