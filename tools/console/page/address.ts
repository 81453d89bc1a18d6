// The place of the page: all of it is behind the # of the address, which no proxy sees.
type Query = Record<string, string>;

export function here(): { view: string; query: Query } {
  const [view = '', query] = location.hash.slice(1).split('?');
  return { view: view || 'now', query: Object.fromEntries(new URLSearchParams(query)) };
}

/** The address of a view. The lock service that is shown stays the same one. */
export function to(view: string, query: Record<string, string | undefined> = {}): string {
  const all = Object.entries({ service: here().query.service, ...query }).filter(([, value]) => value) as string[][];
  return `#${view}${all.length > 0 ? `?${new URLSearchParams(all)}` : ''}`;
}

/** The same view, with another filter or order. */
export function but(query: Record<string, string | undefined>): string {
  const { view, query: before } = here();
  return to(view, { ...before, ...query });
}

/** Reads or sets a value in the storage of the browser. If that is forbidden, it lasts until the page is closed. */
export function kept(key: string, value?: string): string | null | undefined {
  try {
    const all = localStorage;
    if (value !== undefined) all.setItem(`locks.${key}`, value);
    return all.getItem(`locks.${key}`);
  } catch {
    return value;
  }
}
