// `node --import <this file>`: snippets lie in a temporary folder, and import what a user's project would have installed.
import { register } from 'node:module';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';

const root = new URL('../../', import.meta.url);
const OURS = new Map(ENTRY_POINTS.map(({ specifier, source }) => [specifier, source]));

if (!import.meta.url.includes('?hooks')) register(`${import.meta.url}?hooks`);

export function resolve(specifier, context, next) {
  const ours = OURS.get(specifier);
  if (ours) return { url: new URL(ours, root).href, shortCircuit: true };
  const isFromSnippet = context.parentURL?.startsWith('file:') && !context.parentURL.startsWith(root.href);
  if (!isFromSnippet || /^(?:[./]|node:)/.test(specifier)) return next(specifier, context);
  return next(specifier, { ...context, parentURL: new URL('package.json', root).href });
}
