// A bar chart as SVG. It stands on a page that may be light or dark and has no say in that, so its background is
// transparent and its colours have enough contrast to both.
const TEXT = '#7a828c';
const COLOURS = { ours: '#2f81f7', variant: '#9cc4fb', observed: '#9cc4fb', peer: '#aab2bb', baseline: 'none' };
const WIDTH = 760;
const LABEL_WIDTH = 250;
const VALUE_WIDTH = 110;
const ROW = 26;
const BAR = 16;
const TOP = 14;
const AXIS = 30;
const CHARACTER = 6.6; // of the 12 px font, about

/**
 * @typedef {{ label: string, value: number, text: string, kind: import('../contestants/index.mjs').Contestant['kind'], range?: [number, number] }} Bar
 * @param {{ title: string, unit: string, bars: Bar[], limit?: { value: number, text: string } }} chart
 *   `range` is drawn as a thin line from the smallest to the largest; `limit` as a dashed one across all bars
 * @returns {string}
 */
export function barChart({ title, unit, bars, limit }) {
  const longest = Math.max(...bars.flatMap(({ value, range }) => [value, range?.[1] ?? 0]), limit?.value ?? 0) || 1;
  const full = WIDTH - LABEL_WIDTH - VALUE_WIDTH;
  const x = (value) => round(LABEL_WIDTH + (value / longest) * full);
  const height = TOP + bars.length * ROW + AXIS;
  const rows = bars.map((bar, index) => barOf(bar, TOP + index * ROW, x));
  const bottom = TOP + bars.length * ROW;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escaped(title)}">`,
    `<title>${escaped(title)}</title>`,
    `<g font-family="-apple-system, 'Segoe UI', Helvetica, Arial, sans-serif" font-size="12" fill="${TEXT}">`,
    ...rows,
    ...(limit ? [limitLine(limit, x(limit.value), bottom)] : []),
    `<line x1="${LABEL_WIDTH}" y1="${TOP - 4}" x2="${LABEL_WIDTH}" y2="${bottom}" stroke="${TEXT}"/>`,
    `<text x="${LABEL_WIDTH}" y="${bottom + 18}">${escaped(unit)}</text>`,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

function barOf({ label, value, text, kind, range }, y, x) {
  const isOurs = kind === 'ours';
  const middle = y + BAR / 2;
  const width = Math.max(1, round(x(value) - LABEL_WIDTH));
  const stroke = kind === 'baseline' ? ` stroke="${COLOURS.peer}" stroke-dasharray="3 2"` : '';
  const weight = isOurs ? ` font-weight="600" fill="${COLOURS.ours}"` : '';
  const parts = [
    `<text x="${LABEL_WIDTH - 8}" y="${middle + 4}" text-anchor="end"${weight}>${escaped(label)}</text>`,
    `<rect x="${LABEL_WIDTH}" y="${y}" width="${width}" height="${BAR}" rx="2" fill="${COLOURS[kind]}"${stroke}/>`,
  ];
  if (range && range[1] > range[0]) {
    parts.push(
      `<line x1="${x(range[0])}" y1="${middle}" x2="${x(range[1])}" y2="${middle}" stroke="${TEXT}" stroke-width="2"/>`,
    );
  }
  const end = Math.max(x(value), range ? x(range[1]) : 0) + 6;
  // A value that would run over the edge stands before it.
  const at = Math.min(end, WIDTH - text.length * CHARACTER);
  parts.push(`<text x="${round(at)}" y="${middle + 4}"${weight}>${escaped(text)}</text>`);
  return parts.join('\n');
}

function limitLine({ text }, x, bottom) {
  return [
    `<line x1="${x}" y1="${TOP - 4}" x2="${x}" y2="${bottom}" stroke="#d29922" stroke-width="1.5" stroke-dasharray="5 4"/>`,
    `<text x="${x}" y="${bottom + 18}" text-anchor="${x > WIDTH / 2 ? 'end' : 'start'}" fill="#bf8700">${escaped(text)}</text>`,
  ].join('\n');
}

function round(number) {
  return Math.round(number * 10) / 10;
}

function escaped(text) {
  return text
    .replaceAll('`', '')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;');
}
