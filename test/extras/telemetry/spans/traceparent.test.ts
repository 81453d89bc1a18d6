import { formatTraceparent, parseTraceparent } from '../../../../lib/extras/telemetry/spans/names.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

describe('parseTraceparent', () => {
  it('reads what another process has written', () => {
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-01`)).toEqual({
      traceId: TRACE,
      spanId: SPAN,
      traceFlags: 1,
      isRemote: true,
    });
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-00`)?.traceFlags).toBe(0);
  });

  it('keeps no flag that it does not know', () => {
    expect(parseTraceparent(`00-${TRACE}-${SPAN}-ff`)?.traceFlags).toBe(1);
  });

  it.each([
    ['nothing', undefined],
    ['a number', 1],
    ['an object that becomes the right text', { toString: () => `00-${TRACE}-${SPAN}-01`, length: 55 }],
    ['an empty text', ''],
    ['another version', `01-${TRACE}-${SPAN}-01`],
    ['upper case', `00-${TRACE.toUpperCase()}-${SPAN}-01`],
    ['a trace of zeros', `00-${'0'.repeat(32)}-${SPAN}-01`],
    ['a span of zeros', `00-${TRACE}-${'0'.repeat(16)}-01`],
    ['more behind it', `00-${TRACE}-${SPAN}-01-more`],
    ['a line break behind it', `00-${TRACE}-${SPAN}-01\n`],
    ['a line break in place of the last sign', `00-${TRACE}-${SPAN}-0\n`],
    ['no hexadecimal', `00-${TRACE.replace('a', 'g')}-${SPAN}-01`],
    ['digits of another script', `00-${TRACE}-${SPAN.replace('7', '٧')}-01`],
    ['HTML', `<script>${'a'.repeat(47)}`],
    ['a megabyte', `00-${TRACE}-${SPAN}-01`.repeat(20_000)],
  ])('ignores %s', (_, text) => {
    expect(parseTraceparent(text)).toBeUndefined();
  });
});

describe('formatTraceparent', () => {
  it('is read by parseTraceparent', () => {
    const text = formatTraceparent({ traceId: TRACE, spanId: SPAN, traceFlags: 1 });
    expect(text).toHaveLength(55);
    expect(parseTraceparent(text)).toMatchObject({ traceId: TRACE, spanId: SPAN });
  });

  it('is nothing for a trace that is not recorded', () => {
    expect(formatTraceparent({ traceId: TRACE, spanId: SPAN, traceFlags: 0 })).toBeUndefined();
  });
});
