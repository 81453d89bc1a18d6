// Finds the tools that check the model.
import { C_COMPILER, findTools } from '../../test/support/process/toolchain.mjs';

const SPIN = {
  name: 'spin',
  programs: ['spin'],
  flag: '-V',
  packages: ['spin'],
  otherwise: ['macOS           brew install spin', 'elsewhere       https://spinroot.com/spin/Man/README.html'],
};

export function findToolchain() {
  const [spin, compiler] = findTools([SPIN, C_COMPILER]);
  return { spin, compiler };
}
