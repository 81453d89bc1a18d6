import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { atExit } from '../../support/process/at-exit.js';
import { findTools, OPENSSL } from '../../support/process/toolchain.mjs';

const run = promisify(execFile);
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/** A certificate and its key: the names of their files, and what is in them. */
export interface Certificate {
  readonly files: { readonly cert: string; readonly key: string };
  readonly cert: string;
  readonly key: string;
}

/** A certificate authority for a test, trusted by nobody else, with the certificates that it has signed. */
export class CertificateAuthority implements Disposable {
  readonly file: string;
  readonly #folder: string;
  readonly #openssl: string;
  readonly #forget: () => void;

  private constructor(openssl: string) {
    this.#openssl = openssl;
    this.#folder = mkdtempSync(join(tmpdir(), 'certificates-'));
    this.file = join(this.#folder, 'ca.crt');
    this.#forget = atExit(() => this.#remove());
  }

  static async create(): Promise<CertificateAuthority> {
    const [openssl] = findTools([OPENSSL]);
    const authority = new CertificateAuthority(openssl!);
    await authority.#run(
      'req',
      '-x509',
      ...NEW_KEY,
      '-keyout',
      'ca.key',
      '-out',
      'ca.crt',
      '-subj',
      '/CN=test authority',
    );
    return authority;
  }

  get cert(): string {
    return readFileSync(this.file, 'utf8');
  }

  /** @param altNames what it is for, such as `IP:127.0.0.1,DNS:localhost` */
  async sign(name: string, altNames: string): Promise<Certificate> {
    const [key, request, cert, extensions] = ['key', 'csr', 'crt', 'ext'].map((kind) => `${name}.${kind}`) as [
      string,
      string,
      string,
      string,
    ];
    writeFileSync(join(this.#folder, extensions), `subjectAltName=${altNames}\n`);
    await this.#run('req', ...NEW_KEY, '-keyout', key, '-out', request, '-subj', `/CN=${name}`);
    const by = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', extensions];
    await this.#run('x509', '-req', '-in', request, '-out', cert, ...by);
    const files = { cert: join(this.#folder, cert), key: join(this.#folder, key) };
    return { files, cert: readFileSync(files.cert, 'utf8'), key: readFileSync(files.key, 'utf8') };
  }

  [Symbol.dispose](): void {
    this.#forget();
    this.#remove();
  }

  #run(...args: string[]): Promise<unknown> {
    return run(this.#openssl, args, { cwd: this.#folder });
  }

  #remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
