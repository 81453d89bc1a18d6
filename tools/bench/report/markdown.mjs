/**
 * @param {string[][]} rows the first is the header
 * @param {number} texts how many columns are words; the others are numbers, and stand to the right
 * @returns {string}
 */
export function markdownTable([header, ...rows], texts = 1) {
  const line = (cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|') || ' ').join(' | ')} |`;
  const alignment = header.map((_, column) => (column < texts ? '---' : '---:'));
  return [line(header), line(alignment), ...rows.map(line)].join('\n');
}
