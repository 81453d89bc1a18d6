/** One series of a scrape. */
export interface ExposedSeries {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const COMMENT =
  /^# (?:HELP [a-zA-Z_:][\w:]* (?:[^\\\n]|\\[\\n])*|TYPE [a-zA-Z_:][\w:]* \w+|UNIT [a-zA-Z_:][\w:]* [\w{}]+)$/;
const SERIES = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (NaN|[+-]Inf|-?[\d.]+(?:e[+-]?\d+)?)(?: \d+)?$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\[\\"n])*)"(,|$)/y;
const ESCAPES: Readonly<Record<string, string>> = { '\\n': '\n', '\\"': '"', '\\\\': '\\' };

/**
 * Reads the text that Prometheus scrapes, as strictly as its description reads.
 *
 * @throws Error for a line that is neither a comment nor a series, a character that no line has, or a series that is there twice
 */
export function parseExposition(text: string): ExposedSeries[] {
  if (!text.endsWith('\n')) throw new Error('the last line has no end');
  const seen = new Set<string>();
  const found: ExposedSeries[] = [];
  for (const line of text.slice(0, -1).split('\n')) {
    // Prometheus takes them, but not everything that shows a label escapes them.
    // eslint-disable-next-line no-control-regex
    if (/[\u0000-\u001f]/.test(line)) throw new Error(`a control character in ${JSON.stringify(line)}`);
    if (line === '' || COMMENT.test(line)) continue;
    const [, name, labels = '', value] = SERIES.exec(line) ?? [];
    if (name === undefined) throw new Error(`neither a comment nor a series: ${JSON.stringify(line)}`);
    const series = { name, labels: parseLabels(labels, line), value: Number(value!.replace('Inf', 'Infinity')) };
    const id = JSON.stringify([
      name,
      Object.keys(series.labels)
        .sort()
        .map((label) => [label, series.labels[label]]),
    ]);
    if (seen.has(id)) throw new Error(`a series that is there twice: ${line}`);
    seen.add(id);
    found.push(series);
  }
  return found;
}

function parseLabels(text: string, line: string): Record<string, string> {
  const labels: [string, string][] = [];
  LABEL.lastIndex = 0;
  while (LABEL.lastIndex < text.length) {
    const [, name, value, end] = LABEL.exec(text) ?? [];
    if (name === undefined) throw new Error(`no labels: ${JSON.stringify(line)}`);
    labels.push([name, value!.replace(/\\[\\"n]/g, (escape) => ESCAPES[escape]!)]);
    if (end === '' && LABEL.lastIndex < text.length) throw new Error(`no labels: ${JSON.stringify(line)}`);
  }
  if (new Set(labels.map(([name]) => name)).size < labels.length) throw new Error(`a label twice: ${line}`);
  return Object.fromEntries(labels);
}
