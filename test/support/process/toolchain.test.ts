import { C_COMPILER, findTools } from './toolchain.mjs';

describe('what a test needs to be built', () => {
  it('is asked for, where it is missing and cannot be installed', () => {
    expect(() => findTools([C_COMPILER], { PATH: '/nowhere' })).toThrow(
      'Not found: a C compiler. To install:\n' +
        '  Debian, Ubuntu  sudo apt-get install gcc libc6-dev\n' +
        '  macOS           xcode-select --install',
    );
  });

  it('is found by any of its names', () => {
    const node = { ...C_COMPILER, programs: ['no-such-program', process.execPath] };
    expect(findTools([node], { PATH: '/nowhere' })).toEqual([process.execPath]);
  });
});
