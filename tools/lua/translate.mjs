// Translates assembled scripts into TypeScript, for the Redis in memory.
//
// The code of an include becomes functions and variables of the module, once. What an include does beside that is a
// function too, which a script calls where it includes it. One script runs at a time, and none waits for anything.
import { basename } from 'node:path';
import luaparse from 'luaparse';
import { formatted } from '../format.mjs';
import { camelCase, isFragment, textOf } from './assemble.mjs';
import { Emitter } from './emit.mjs';
import { resolveBlock, Scope } from './resolve.mjs';

/** Scripts about servers and connections, which memory has not. */
const OF_SERVERS = new Set(['guard', 'probe', 'probe-inbox', 'quarantine', 'try-write']);

const HEAD = `// Written by \`npm run lua\` from the .lua files in lib/. Change them.
/* oxlint-disable prefer-const */
import * as lua from './lua.js';
import type { MemoryRedis } from './memory-redis.js';

type Value = lua.Value;

let redis: MemoryRedis;
`;

/** @param {Map<string, import('./assemble.mjs').Piece[]>} scripts */
export async function translate(scripts) {
  const wanted = [...scripts].filter(([name]) => !OF_SERVERS.has(name));
  const module = new Scope();
  for (const name of ['KEYS', 'ARGV']) module.declare(name, [{ type: 'TableConstructorExpression', fields: [] }]);
  const emitter = new Emitter();
  const includes = new Map();
  const parts = [HEAD];
  for (const [, pieces] of wanted) {
    for (const piece of pieces) {
      if (!isFragment(piece.file) || includes.has(piece)) continue;
      const text = textOf(piece.lines);
      const known = [...includes].find(([each]) => each.file === piece.file && textOf(each.lines) === text);
      includes.set(piece, known?.[1] ?? include(piece, text));
    }
  }
  const names = wanted.map(([name, pieces]) => {
    const own = new Scope(module, module);
    const code = pieces.map((piece) => {
      if (includes.has(piece)) return includes.get(piece);
      const { body } = parse(piece);
      resolveBlock(body, own);
      return emitter.block(body);
    });
    const called = `${camelCase(name)}Script`;
    const parameters = code.some((part) => /\bARGV\b/.test(part)) ? 'KEYS: Value, ARGV: Value' : 'KEYS: Value';
    parts.push(`// ${name}.lua\nfunction ${called}(${parameters}): Value {\n${code.join('\n')}\n}\n`);
    return `  ${camelCase(name)}: ${called},`;
  });
  parts.push(`/** The scripts by their names. */
const SCRIPTS = {\n${names.join('\n')}\n};

/** Runs one script as one step. */
export function runScript(server: MemoryRedis, name: keyof typeof SCRIPTS, keys: readonly string[], args: readonly Value[]): Value {
  redis = server;
  return SCRIPTS[name](keys, args);
}
`);
  return formatted('scripts.ts', parts.join('\n'));

  /** @returns what a script does where it includes this */
  function include(piece, text) {
    const { body } = parse(piece, text);
    resolveBlock(body, module);
    const isFunction = ({ type }) => type === 'FunctionDeclaration';
    const [functions, others] = [body.filter(isFunction), body.filter((node) => !isFunction(node))];
    const name = `begin${camelCase(`-${basename(piece.file, '.lua')}`)}`;
    const { variables, code } = emitter.beginning(others);
    const begin = code === '' ? '' : `function ${name}(): void {\n${code}\n}\n`;
    const declared = variables.map((variable) => `let ${variable}: Value;\n`).join('');
    parts.push(`// ${piece.file}\n${declared}${begin}${emitter.block(functions)}\n`);
    return code === '' ? '' : `${name}();`;
  }
}

function parse(piece, text = textOf(piece.lines)) {
  try {
    return luaparse.parse(text, { luaVersion: '5.1', comments: false, locations: true, encodingMode: 'pseudo-latin1' });
  } catch (error) {
    throw new Error(`${piece.file}: ${error.message}`, { cause: error });
  }
}
