// The witness as a process that knows nothing of Redis.
import { serveWitness } from './witness-server.js';

const [, , path, history] = process.argv as [string, string, string, string];
await serveWitness(path, history);
process.send!('ready');
process.on('disconnect', () => process.exit());
