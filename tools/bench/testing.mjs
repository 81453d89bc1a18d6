// node:test gives a promise for each test, which only its runner waits for.
import * as runner from 'node:test';

export const describe = (name, body) => void runner.describe(name, body);
export const it = (name, body) => void runner.it(name, body);
