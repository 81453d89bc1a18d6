import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { C_COMPILER, findTools, PROMETHEUS, PROMTOOL } from './toolchain.mjs';

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

  it('is installed once for all, starts no service, and brings nothing that is only recommended', () => {
    const bin = mkdtempSync(join(tmpdir(), 'toolchain-'));
    try {
      const program = (name: string, text: string) => {
        writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`);
        chmodSync(join(bin, name), 0o755);
      };
      // Stands in for apt-get, and for a sudo where this process is not root.
      program('sudo', 'shift; exec "$@"');
      program(
        'apt-get',
        `[ "$1" = --version ] && exit
         echo "RUNLEVEL=$RUNLEVEL SYSTEMD_OFFLINE=$SYSTEMD_OFFLINE $*" >> "$BIN/calls"
         printf '#!/bin/sh\\n' > "$BIN/made-prometheus"; cp "$BIN/made-prometheus" "$BIN/made-promtool"
         chmod +x "$BIN/made-prometheus" "$BIN/made-promtool"`,
      );
      const made = [PROMETHEUS, PROMTOOL].map((tool) => ({
        ...tool,
        service: 'a-service-of-nobody',
        programs: tool.programs.map((name) => `made-${name}`),
      }));
      const env = { PATH: [bin, '/usr/bin', '/bin'].join(delimiter), BIN: bin };
      expect(findTools(made, env)).toEqual(['made-prometheus', 'made-promtool']);
      expect(readFileSync(join(bin, 'calls'), 'utf8')).toBe(
        'RUNLEVEL=1 SYSTEMD_OFFLINE=1 install -y -o DPkg::Lock::Timeout=300 --no-install-recommends prometheus\n',
      );
    } finally {
      rmSync(bin, { recursive: true });
    }
  });
});
