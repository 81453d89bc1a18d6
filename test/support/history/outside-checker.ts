// Reads a history as someone does who knows only "The format of a history" in docs/operations/check-us.md. It shares no
// code with the checkers of the library and of chaos: it looks for an order of the operations in which a lock would
// have allowed them (linearizability), and knows no leases and no intervals.

interface Line {
  readonly time: number;
  readonly process: number;
  readonly type: 'invoke' | 'ok' | 'fail' | 'info';
  readonly f: 'acquire' | 'release';
  readonly key: string;
  readonly value: {
    readonly mode: string;
    readonly permits?: number;
    readonly total?: number;
    readonly token?: number;
  };
}

/** An operation that was done, with the value of its end. */
interface Operation {
  readonly f: Line['f'];
  readonly value: Line['value'];
  readonly name: string;
}

/** What a lock may be like, after some operations that it has executed before they ended. */
interface State {
  readonly holders: readonly Operation[];
  /** The largest tokens: of all, and of those that shared with nobody. */
  readonly top: number;
  readonly topAlone: number;
  readonly done: ReadonlySet<Operation>;
}

const FREE: State = { holders: [], top: 0, topAlone: 0, done: new Set() };

/** Returns what no lock would have done, one sentence for each key; none if all is well. @throws if a line is not as described */
export function findImpossible(jsonLines: string): string[] {
  const lines = jsonLines.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Line]));
  lines.forEach((line, index) => {
    if (index > 0 && line.time < lines[index - 1]!.time) throw new Error(`Line ${index + 1} is out of order`);
  });
  return [...new Set(lines.map(({ key }) => key))].flatMap((key) => {
    const impossible = findInOne(lines.filter((line) => line.key === key));
    return impossible === undefined ? [] : [`${key}: ${impossible}`];
  });
}

function findInOne(lines: readonly Line[]): string | undefined {
  const begun = new Map<number, Line>();
  const steps: { at: number; operation: Operation; isEnd: boolean }[] = [];
  lines.forEach((line, index) => {
    if (line.type === 'invoke') {
      if (begun.has(line.process)) throw new Error(`Process ${line.process} does two operations at once`);
      begun.set(line.process, line);
      return;
    }
    const first = begun.get(line.process);
    if (first?.f !== line.f) throw new Error(`Process ${line.process} ends what it has not begun`);
    begun.delete(line.process);
    if (line.type === 'fail') return;
    if (line.type === 'info') return void begun.set(line.process, line);
    const operation = { f: line.f, value: line.value, name: `${line.f} of ${line.value.token} at ${line.time}` };
    steps.push({ at: lines.indexOf(first), operation, isEnd: false }, { at: index, operation, isEnd: true });
  });
  const tokens = steps.flatMap(({ operation, isEnd }) =>
    isEnd && operation.f === 'acquire' ? [operation.value.token] : [],
  );
  if (new Set(tokens).size < tokens.length) return 'two leases have the same token';
  steps.sort((a, b) => a.at - b.at);
  let states: readonly State[] = [FREE];
  const pending = new Set<Operation>();
  for (const { operation, isEnd } of steps) {
    if (!isEnd) {
      pending.add(operation);
      continue;
    }
    // It was executed by now, perhaps after others that are still under way.
    states = reachable(states, pending).flatMap((state) => {
      if (!state.done.has(operation)) return [];
      const done = new Set(state.done);
      done.delete(operation);
      return [{ ...state, done }];
    });
    pending.delete(operation);
    if (states.length === 0) return operation.name;
  }
  return undefined;
}

function reachable(from: readonly State[], pending: ReadonlySet<Operation>): readonly State[] {
  const found = new Map(from.map((state) => [nameOf(state), state]));
  for (const state of found.values()) {
    for (const operation of pending) {
      if (state.done.has(operation)) continue;
      const next = execute(state, operation);
      if (next && !found.has(nameOf(next))) found.set(nameOf(next), next);
    }
  }
  return [...found.values()];
}

function nameOf({ holders, top, topAlone, done }: State): string {
  const names = (operations: Iterable<Operation>): string =>
    Array.from(operations, ({ name }) => name)
      .sort()
      .join();
  return [names(holders), top, topAlone, names(done)].join('|');
}

/** Returns nothing if a lock in this state refuses it. */
function execute({ holders, top, topAlone, done }: State, operation: Operation): State | undefined {
  const { mode, permits = 1, total = 1, token = 0 } = operation.value;
  const after = { top, topAlone, done: new Set([...done, operation]) };
  if (operation.f === 'release') {
    const left = holders.filter(({ value }) => value.token !== token);
    return left.length === holders.length ? undefined : { ...after, holders: left };
  }
  const isAlone = mode === 'exclusive';
  if (holders.some(({ value }) => isAlone || value.mode !== mode)) return undefined;
  const used = holders.reduce((sum, { value }) => sum + (value.permits ?? 1), permits);
  if (mode === 'semaphore' && used > total) return undefined;
  if (token <= (isAlone ? top : topAlone)) return undefined;
  const largest = Math.max(top, token);
  return { ...after, holders: [...holders, operation], top: largest, topAlone: isAlone ? token : topAlone };
}
