// Asks before something is done, and says what came of it.
import { type Child, h, show } from './dom.js';
import { Problem } from './live.js';

/** Attributes of the field, with its name, its label, and what else is to be known. */
export interface Field extends Readonly<Record<string, unknown>> {
  readonly name: string;
  readonly label: string;
  readonly help: string;
}

export const REASON: Field = {
  name: 'reason',
  label: 'Reason',
  help: 'Written to the log, with your name.',
  maxlength: 200,
};

/** @param run resolves to what was done, in a sentence, or rejects with a Problem */
export function ask(
  title: string,
  facts: readonly (readonly [string, Child])[],
  warning: Child,
  fields: readonly Field[],
  verb: string,
  run: (values: Readonly<Record<string, string>>) => Promise<string>,
): void {
  const dialog = document.createElement('dialog');
  const opener = document.activeElement as HTMLElement;
  let isBusy = false;
  let problem = '';
  let done = '';
  dialog.ariaLabel = title;
  dialog.onclose = () => {
    dialog.remove();
    opener.focus();
  };
  const onsubmit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (isBusy) return;
    const values = Object.fromEntries(new FormData(event.target as HTMLFormElement)) as Record<string, string>;
    isBusy = true;
    problem = '';
    draw();
    try {
      done = await run(values);
    } catch (error) {
      problem = error instanceof Problem ? error.message : 'No answer arrived. Check if it was done.';
    }
    isBusy = false;
    draw();
    if (done) dialog.querySelector('button')?.focus();
  };
  const draw = (): void =>
    show(
      dialog,
      h(
        'form',
        { onsubmit },
        h('h2', title),
        h(
          'dl.facts',
          facts.map(([word, fact]) => [h('dt', word), h('dd', fact)]),
        ),
        !done && [
          warning && h('p.warning', warning),
          fields.map(({ label, help, ...field }) =>
            h(
              'label.field',
              { key: field.name },
              label,
              h('input', { autocomplete: 'off', ...field }),
              h('span.second', help),
            ),
          ),
        ],
        h(problem ? 'p.problem' : 'p', { role: 'alert' }, problem || done),
        h(
          'div.buttons',
          h('button', { type: 'button', onclick: () => dialog.close() }, done ? 'Close' : 'Cancel'),
          !done && h('button.main', { disabled: isBusy }, verb),
        ),
      ),
    );
  document.body.append(dialog);
  draw();
  dialog.showModal();
}
