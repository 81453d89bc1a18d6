// A process that starts a server and never stops it: the test ends this process in every way there is.
import { startRedisServer } from '../../../scripts/redis-server.mjs';

const server = await startRedisServer();
if (process.argv.includes('paused')) await server.pause();
process.on('message', (end) => {
  if (end === 'throw') throw new Error('as asked');
  process.exit();
});
process.send({ pid: server.pid, folder: server.folder });
