// Starts a server with a folder, prints its path, and runs until the test kills it.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PipedServer } from './piped-server.js';

const folder = mkdtempSync(join(tmpdir(), 'piped-server-'));
const server = new PipedServer({ command: ['sh', '-c', 'echo $$; exec sleep 3600'], folder, signal: 'TERM' });
const timer = setInterval(() => {
  const pid = Number(server.log);
  if (pid === 0) return;
  clearInterval(timer);
  console.log(JSON.stringify({ pid, folder }));
}, 10);
