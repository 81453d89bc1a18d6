// A view returns a tree, and only the differences change the document: the rest keeps focus, selection and scroll.
// Texts become text nodes, so no name can be more than text here.
import { escapeText } from '../../../lib/kernel/util/quoted.js';

type Attributes = Readonly<Record<string, unknown>>;
export type Child = Tree | string | number | false | null | undefined | readonly Child[];

export interface Tree {
  readonly tag: string;
  readonly attributes: Attributes;
  readonly children: readonly (Tree | string)[];
}

/**
 * `h('a.name', { href }, text)`: an element with its classes.
 *
 * `key` names a child among its siblings. `--name` is a property of the style, `onname` a listener, `value` is written
 * where no user types, and all else are attributes.
 */
export function h(name: string, ...rest: readonly [Attributes, ...Child[]] | readonly Child[]): Tree {
  const [tag = '', ...classes] = name.split('.');
  const [first] = rest;
  const hasAttributes = isObject(first) && !('tag' in first);
  const given = hasAttributes ? (first as Attributes) : {};
  return {
    tag,
    attributes: classes.length > 0 ? { ...given, class: classes.join(' ') } : given,
    children: flat(hasAttributes ? rest.slice(1) : rest),
  };
}

/** The text of a tree, without its marks. */
export const textOf = (child: Child): string =>
  Array.isArray(child)
    ? child.map(textOf).join('')
    : isObject(child)
      ? (child as Tree).children.map(textOf).join('')
      : child || child === 0
        ? `${child as string}`
        : '';

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function flat(children: readonly unknown[]): (Tree | string)[] {
  return children
    .flat(Infinity)
    .filter((child) => child || child === 0)
    .map((child) => (isObject(child) ? (child as Tree) : `${child as string}`));
}

const keys = new WeakMap<Node, string>();
const shown = new WeakMap<Element, Attributes>();

/** Makes the children of an element those of the tree. */
export function show(parent: Element, ...children: Child[]): void {
  sync(parent, flat(children));
}

function sync(parent: Element, children: readonly (Tree | string)[]): void {
  const before = new Map([...parent.childNodes].map((node) => [keys.get(node), node]));
  const counts: Record<string, number> = {};
  const wanted = children.map((child) => {
    const isText = typeof child === 'string';
    const tag = isText ? '' : child.tag;
    const place = (counts[tag] = (counts[tag] ?? 0) + 1);
    const key = `${tag} ${isText ? place : ((child.attributes.key as string | undefined) ?? place)}`;
    const node = before.get(key) ?? (isText ? new Text() : document.createElement(tag));
    before.delete(key);
    keys.set(node, key);
    if (!isText) update(node as HTMLElement, child);
    else if ((node as Text).data !== escapeText(child)) (node as Text).data = escapeText(child);
    return node;
  });
  before.forEach((node) => node.remove());
  arrange(parent, wanted);
}

/** Whoever has the focus, or the selection, is not moved: the others are moved around it. */
function arrange(parent: Element, wanted: readonly ChildNode[]): void {
  let next = parent.firstChild;
  let held: Node | undefined;
  for (const node of wanted) {
    // To ask for the selection takes time, so it is asked for where something moves.
    if (next && node !== next) {
      held ??=
        wanted.find((each) => each.contains(document.activeElement) || each.contains(getSelection()!.anchorNode)) ??
        parent;
    }
    while (node === held && next && next !== held) {
      const after: ChildNode | null = next.nextSibling;
      parent.append(next);
      next = after;
    }
    if (node === next) next = node.nextSibling;
    else parent.insertBefore(node, next);
  }
}

function update(element: HTMLElement, { attributes, children }: Tree): void {
  const before = shown.get(element);
  shown.set(element, attributes);
  for (const name of Object.keys({ ...before, ...attributes })) {
    const value = attributes[name];
    if (name !== 'key' && value !== before?.[name]) set(element, name, value);
  }
  sync(element, children);
}

function set(element: HTMLElement, name: string, value: unknown): void {
  if (name.startsWith('on')) (element as unknown as Record<string, unknown>)[name] = value;
  else if (name.startsWith('--')) element.style.setProperty(name, value as string);
  else if (name === 'value') {
    if (element !== document.activeElement) (element as HTMLInputElement).value = value as string;
  } else if (value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? '' : escapeText(String(value as string)));
}
