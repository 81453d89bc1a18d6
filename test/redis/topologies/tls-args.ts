import type { Certificate, CertificateAuthority } from './certificates.js';

export interface TlsArgs {
  readonly authority: CertificateAuthority;
  readonly certificate: Certificate;
  readonly port: number;
  /** Makes client certificates mandatory or not. */
  readonly authClients?: 'yes' | 'no';
}

/** Arguments for a server that speaks TLS on a second port. */
export function tlsArgs({ authority, certificate, port, authClients = 'no' }: TlsArgs): string[] {
  const { cert, key } = certificate.files;
  const files = ['--tls-cert-file', cert, '--tls-key-file', key, '--tls-ca-cert-file', authority.file];
  return ['--tls-port', `${port}`, ...files, '--tls-auth-clients', authClients];
}
