import { memoryStores } from '../../memory/memory-lock-store.js';
import type { StartLog } from '../log/start-log.js';
import type { ResolvedModuleOptions } from './module-options.js';

export function createInMemory({ instanceId }: ResolvedModuleOptions, log: StartLog) {
  if (process.env['NODE_ENV'] === 'production') log.inMemory();
  return memoryStores({ instanceId });
}
