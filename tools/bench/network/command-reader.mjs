// Reads just enough of RESP to see where one command ends. INFO commandstats would also count what scripts call, and no
// Redis before 8 counts per client.

const NEW_LINE = 10;

/**
 * Reads a stream of commands (`*<count>`, then for each part `$<length>` and that many bytes), in pieces of any size.
 *
 * @param {() => void} onCommand
 * @returns {(chunk: Buffer) => void}
 */
export function commandReader(onCommand) {
  let line = ''; // what has come of a line so far
  let parts = 0; // of the command that is being read
  let skip = 0; // bytes of a part, and the line end after it
  return (chunk) => {
    let at = 0;
    while (at < chunk.length) {
      if (skip > 0) {
        const skipped = Math.min(skip, chunk.length - at);
        skip -= skipped;
        at += skipped;
        if (skip === 0 && --parts === 0) onCommand();
        continue;
      }
      const end = chunk.indexOf(NEW_LINE, at);
      line += chunk.toString('latin1', at, end < 0 ? chunk.length : end + 1);
      if (end < 0) return;
      at = end + 1;
      const number = Number.parseInt(line.slice(1), 10);
      if (line[0] === '*') parts = number;
      else skip = number + 2;
      line = '';
    }
  };
}
