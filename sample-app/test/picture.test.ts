import { COMPARED, comparison, picture } from '../demo/picture.mjs';
import { readGuide } from '../../test/docs/guides.js';
import { allIn, readSvg, rowsOf } from './svg.js';

describe('the picture of the demo', () => {
  it('has a line for each finding, with its cells in columns', () => {
    const svg = picture(
      [
        { what: 'Units oversold <without> the lock', measured: '40 & more', promised: 'some', isKept: undefined },
        { what: 'Exports at once', measured: '3 of 12', promised: '<= 3', isKept: true },
        { what: 'Ticks missed', measured: '1', promised: '0', isKept: false },
      ],
      'Done.',
    );
    expect(rowsOf(svg)).toEqual([
      ['$ npm run demo', '', '', ''],
      ['', 'measured', 'promised', ''],
      ['Units oversold <without> the lock', '40 & more', 'some', ''],
      ['Exports at once', '3 of 12', '<= 3', 'ok'],
      ['Ticks missed', '1', '0', 'BROKEN'],
      ['Done.', '', '', ''],
    ]);
  });

  it.each([
    '<svg>',
    '<svg><g></svg></g>',
    '<svg a="1" a="2"/>',
    '<svg>a < b</svg>',
    '<svg>a & b</svg>',
    '<svg/><svg/>',
  ])('would be found broken: %s', (source) =>
    expect(() => readSvg(source)).toThrow(/no text|closes|twice|not one element/),
  );
});

describe('docs/demo.svg', () => {
  const source = readGuide('docs/demo.svg');

  it('is of a run in which all was as promised', () => {
    const [command, header, ...rows] = rowsOf(source);
    expect(command![0]).toBe('$ npm run demo');
    expect(header).toEqual(['', 'measured', 'promised', '']);
    expect(rows.pop()![0]).toMatch(/^Everything as promised, in \d+\.\d s\.$/);
    expect(rows.length).toBeGreaterThan(15);
    for (const [what, measured, promised, mark] of rows) {
      expect([what, measured, promised].every((cell) => cell !== '')).toBe(true);
      expect(mark).toMatch(/^(?:ok)?$/);
    }
  });

  it('keeps its text inside, and readable on its own background, whatever the page looks like', () => {
    const svg = readSvg(source);
    const [background] = allIn(svg, 'rect');
    expect(Number(background!.attributes.width)).toBeCloseTo(Number(svg.attributes.width) - 1);
    expect(Number(background!.attributes.height)).toBeCloseTo(Number(svg.attributes.height) - 1);
    for (const { attributes } of allIn(svg, 'text')) {
      expect(Number(attributes.x)).toBeLessThan(Number(svg.attributes.width));
      expect(Number(attributes.y)).toBeLessThan(Number(svg.attributes.height));
    }
    const colours = allIn(svg, 'g').flatMap(({ attributes: { fill } }) => fill ?? []);
    expect(new Set(colours).size).toBeGreaterThan(3);
    // The contrast that WCAG requires for small text.
    for (const colour of colours) expect(contrast(colour, background!.attributes.fill!)).toBeGreaterThan(4.5);
  });
});

describe('docs/without-locks.svg', () => {
  const findings = rowsOf(readGuide('docs/demo.svg')).map(([what, measured]) => ({ what: what!, measured: measured! }));

  it('shows findings of the same run as docs/demo.svg', () => {
    for (const [, ...names] of COMPARED) {
      for (const name of names) expect(findings.map(({ what }) => what)).toContain(name);
    }
    expect(readGuide('docs/without-locks.svg')).toBe(comparison(findings));
  });

  it('is in the README, described in words', () => {
    expect(readGuide('README.md')).toMatch(/!\[[^\]]{40,}\]\(docs\/without-locks\.svg\)/);
  });
});

function contrast(one: string, other: string): number {
  const [dark, light] = [luminance(one), luminance(other)].toSorted((a, b) => a - b);
  return (light! + 0.05) / (dark! + 0.05);
}

function luminance(colour: string): number {
  const parts = [1, 3, 5].map((from) => Number.parseInt(colour.slice(from, from + 2), 16) / 255);
  const [red, green, blue] = parts.map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}
