// Asks before an action, and shows why it was refused. It closes if the action is done.
import { type Child, h, show } from './dom.js';
import { Problem, tell } from './live.js';

/** Attributes of the field, with its name, its label and a hint. */
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

/** @param run resolves to a sentence about what was done, or rejects with a Problem */
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
      const done = await run(values);
      dialog.close();
      return tell(done);
    } catch (error) {
      problem = error instanceof Problem ? error.message : 'No answer arrived. Check if it was done.';
    }
    isBusy = false;
    draw();
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
        h('p.problem', { role: 'alert' }, problem),
        h(
          'div.buttons',
          h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'),
          h('button.main', { disabled: isBusy }, verb),
        ),
      ),
    );
  document.body.append(dialog);
  draw();
  dialog.showModal();
}
