// Module hook of mutant-loader.mjs: one file has another text.
let broken;

export function initialize(mutant) {
  broken = mutant;
}

export function load(url, context, next) {
  if (url !== broken.url) return next(url, context);
  Atomics.add(broken.loads, 0, 1);
  return { format: 'module', source: broken.source, shortCircuit: true };
}
