import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { generateReference } from '../../tools/reference/reference.mjs';

type Reference = Awaited<ReturnType<typeof generateReference>>;
type Declarations = Reference['declarations'];
type MapEntry<M> = M extends Map<infer Key, infer Value> ? [Key, Value] : never;

const program = fileURLToPath(new URL('print-generated.mjs', import.meta.url));
const env = { ...process.env, NODE_OPTIONS: '' };
const output = execFileSync(process.execPath, [program], { env, encoding: 'utf8', maxBuffer: 2 ** 26 });
const generated = JSON.parse(output) as Pick<Reference, 'pages' | 'gaps'> &
  Pick<Declarations, 'errors' | 'events'> & {
    readonly options: MapEntry<Declarations['options']>[];
    readonly api: Record<string, string>;
  };

/** What the declarations of lib/ say, and the pages that are generated from them. */
export const { pages, gaps, errors, events, api } = generated;
export const options = new Map(generated.options);
