const acts = new Set<() => void>();

process.on('exit', () => {
  for (const act of acts) act();
});

/**
 * Does something when this process exits, whatever came in between: an error, or a Ctrl-C that ends in `process.exit`. Gives the
 * function that calls it off, for when all was cleaned up in good order.
 */
export function atExit(act: () => void): () => void {
  acts.add(act);
  return () => void acts.delete(act);
}
