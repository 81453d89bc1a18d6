// @ts-check
// The table of the demo as a picture: docs/demo.svg, and the difference that locks make: without-locks.svg beside it.
// They bring their own background, so they are readable on any page.
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

const COLOURS = { background: '#0d1117', border: '#3d444d', text: '#e6edf3', quiet: '#9198a1', ok: '#3fb950', none: '#d29922', broken: '#f85149' }; // prettier-ignore
const FONT = 13;
/** The width of the widest monospace font that a reader may have, relative to the font size. */
const CHARACTER = FONT * 0.62;
const LINE = 22;
const MARGIN = 20;
const GAP = 2 * CHARACTER;

/**
 * @param {string} file
 * @param {import('./screen.mjs').Finding[]} findings
 * @param {string} verdict
 */
export async function savePicture(file, findings, verdict) {
  await writeFile(file, picture(findings, verdict));
  await writeFile(join(dirname(file), 'without-locks.svg'), comparison(findings));
}

/** The rows of the comparison, and the findings without a lock and with it. */
export const COMPARED = /** @type {const} */ ([
  ['Units oversold', 'Units oversold without the lock', 'Units oversold with the lock'],
  ['Half-done reads', 'Half-done editions read without the lock', 'Half-done editions read with the lock'],
  ['Exports at once', 'Exports at once without the semaphore', 'Exports at once with the semaphore'],
]);

/**
 * Draws three pairs of findings in large print, because the README is often read on a phone.
 *
 * @param {Pick<import('./screen.mjs').Finding, 'what' | 'measured'>[]} findings
 */
export function comparison(findings) {
  const [width, line, margin, columns] = [640, 44, 28, [28, 280, 470]];
  const height = 2 * margin + 4 * line;
  const measured = (/** @type {string} */ name) => findings.find(({ what }) => what === name)?.measured ?? '';
  const rows = COMPARED.map(([what, without, with_]) => [what, measured(without), measured(with_)]);
  const title = 'What happened in the demo without locks, and with them';
  const texts = [['', 'without', 'with locks'], ...rows].map((cells, row) =>
    cells.map((cell, index) => {
      const colour = index === 0 || row === 0 ? COLOURS.text : index === 1 ? COLOURS.none : COLOURS.ok;
      const weight = row === 0 || index > 0 ? ' font-weight="bold"' : '';
      const y = margin + row * line + 30;
      return cell && `<text x="${columns[index]}" y="${y}" fill="${colour}"${weight}>${escaped(cell)}</text>`;
    }),
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${title}">`,
    `<title>${title}</title>`,
    `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8" fill="${COLOURS.background}" stroke="${COLOURS.border}"/>`,
    `<g font-family="ui-sans-serif, system-ui, sans-serif" font-size="26">`,
    ...texts.map((row) => row.join('')),
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

/**
 * @param {import('./screen.mjs').Finding[]} findings
 * @param {string} verdict
 */
export function picture(findings, verdict) {
  const header = ['', 'measured', 'promised', ''];
  const rows = findings.map(({ what, measured, promised, isKept }) => [what, measured, promised, mark(isKept)]);
  /** @type {number[]} */
  const columns = [];
  let x = MARGIN;
  for (const index of header.keys()) {
    columns.push(Math.round(x));
    x += Math.max(...[header, ...rows].map((row) => row[index]?.length ?? 0)) * CHARACTER + GAP;
  }
  const width = Math.round(x - GAP + MARGIN);
  let y = MARGIN;
  /** @param {string[]} cells @param {string} colour @param {string} [weight] */
  const line = (cells, colour, weight = '') => {
    y += LINE;
    const texts = cells.map((cell, index) =>
      cell === '' ? '' : `<text x="${columns[index]}" y="${y - 6}">${escaped(cell)}</text>`,
    );
    return `<g fill="${colour}"${weight}>${texts.join('')}</g>`;
  };
  const lines = [
    line(['$ npm run demo'], COLOURS.quiet),
    line(header, COLOURS.text, ' font-weight="bold"'),
    ...findings.map(({ isKept }, index) => line(rows[index] ?? [], colourOf(isKept))),
    line([], COLOURS.quiet),
    line([verdict], COLOURS.text, ' font-weight="bold"'),
  ];
  const height = y + MARGIN;
  const title = 'What the demo measured, and what was promised';
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${title}">`,
    `<title>${title}</title>`,
    `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8" fill="${COLOURS.background}" stroke="${COLOURS.border}"/>`,
    `<g font-family="ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace" font-size="${FONT}">`,
    ...lines,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

/** @param {boolean | undefined} isKept */
function mark(isKept) {
  return isKept === undefined ? '' : isKept ? 'ok' : 'BROKEN';
}

/** @param {boolean | undefined} isKept */
function colourOf(isKept) {
  return isKept === undefined ? COLOURS.none : isKept ? COLOURS.ok : COLOURS.broken;
}

/** @param {string} text */
function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
