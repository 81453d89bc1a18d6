import { mergeSignals } from '../../../lib/kernel/util/signals.js';

/** A signal that counts who listens to it. */
function countedSignal(): { controller: AbortController; listeners: () => number } {
  const controller = new AbortController();
  const { signal } = controller;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  let count = 0;
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    count++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    count--;
    remove(...args);
  };
  return { controller, listeners: () => count };
}

describe('two signals merged', () => {
  it.each(['lasting', 'own'] as const)('abort with the %s one, and its reason', (which) => {
    const both = { lasting: new AbortController(), own: new AbortController() };
    const { signal } = mergeSignals(both.lasting.signal, both.own.signal);
    expect(signal.aborted).toBe(false);
    both[which].abort('enough');
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBe('enough');
  });

  it('have aborted if one of them has', () => {
    const { signal } = mergeSignals(new AbortController().signal, AbortSignal.abort('before'));
    expect(signal.reason).toBe('before');
  });

  it('are the lasting one if there is no other', () => {
    const { signal } = new AbortController();
    expect(mergeSignals(signal, undefined).signal).toBe(signal);
  });

  it('leave no listener on signals that live longer than the call', () => {
    const lasting = countedSignal();
    const own = countedSignal();
    for (let call = 0; call < 10; call++) {
      const merged = mergeSignals(lasting.controller.signal, own.controller.signal);
      expect([lasting.listeners(), own.listeners()]).toEqual([1, 1]);
      merged.dispose();
    }
    expect([lasting.listeners(), own.listeners()]).toEqual([0, 0]);
  });
});
