// The program of commander.slow.test.ts: nest-commander is CommonJS and requires Nest, which Jest cannot do with Nest
// 12.
import 'reflect-metadata';
import { main } from './reindex-command.js';

await main();
console.log('is through');
