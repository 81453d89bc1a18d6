const TAG = /<(\/?)([a-z]+)((?: [a-z][a-z-]*="[^"<]*")*)( ?\/)?>/gi;

export interface Element {
  readonly name: string;
  readonly attributes: Record<string, string>;
  readonly children: Element[];
  text: string;
}

/**
 * Reads an SVG of ours: elements, attributes in double quotes, text.
 *
 * @throws Error where it is not well-formed
 */
export function readSvg(source: string): Element {
  const root: Element = { name: '', attributes: {}, children: [], text: '' };
  const open = [root];
  let from = 0;
  const addText = (text: string): void => {
    if (/[<>]|&(?!(?:amp|lt|gt|quot);)/.test(text)) throw new Error(`This is no text: ${text}`);
    open.at(-1)!.text += unescaped(text);
  };
  for (const { 0: tag, 1: end, 2: name, 3: attributes, 4: isEmpty, index } of source.matchAll(TAG)) {
    addText(source.slice(from, index));
    from = index + tag.length;
    if (end) {
      const closed = open.pop()!;
      if (closed.name !== name) throw new Error(`${tag} closes <${closed.name}>`);
      continue;
    }
    const pairs = [...attributes!.matchAll(/ ([\w-]+)="([^"]*)"/g)].map(([, key, value]) => [key!, unescaped(value!)]);
    if (new Set(pairs.map(([key]) => key)).size !== pairs.length) throw new Error(`${tag} has an attribute twice`);
    const element = {
      name: name!,
      attributes: Object.fromEntries(pairs) as Record<string, string>,
      children: [],
      text: '',
    };
    open.at(-1)!.children.push(element);
    if (!isEmpty) open.push(element);
  }
  addText(source.slice(from));
  const [svg, ...others] = root.children;
  if (open.length > 1 || !svg || others.length > 0) throw new Error('It is not one element');
  return svg;
}

export function allIn(element: Element, name: string): Element[] {
  return element.children.flatMap((child) => [...(child.name === name ? [child] : []), ...allIn(child, name)]);
}

/** The cells of each line of the demo's picture, by their column. */
export function rowsOf(source: string): string[][] {
  const svg = readSvg(source);
  const lines = allIn(svg, 'g').filter(({ children }) => children.some(({ name }) => name === 'text'));
  const columns = [...new Set(allIn(svg, 'text').map(({ attributes }) => Number(attributes.x)))].toSorted(
    (a, b) => a - b,
  );
  return lines.map(({ children }) => {
    const cells = columns.map(() => '');
    for (const { attributes, text } of children) cells[columns.indexOf(Number(attributes.x))] = text;
    return cells;
  });
}

function unescaped(text: string): string {
  return text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&');
}
