import { computed, defineComponent, h, reactive } from 'vue';
import { EXAMPLE } from '../../../bench/capacity/examples.mjs';
import { needsOf } from '../../../bench/capacity/formula.mjs';
import { needsRows } from '../../../bench/report/capacity-rows.mjs';
import { constants } from '../../../bench/results/capacity.json';

const FIELDS = [
  { name: 'instances', text: 'Instances', min: 1 },
  { name: 'primaries', text: 'Primaries of a cluster (1: one Redis)', min: 1 },
  { name: 'leaseS', text: 'Lease, s', min: 0.1 },
  { name: 'jobs', text: 'Cron jobs', min: 0 },
  { name: 'everyS', text: 'Each is due every … s', min: 1 },
  { name: 'leaderships', text: 'Leaderships', min: 0 },
  { name: 'locks', text: 'Held locks of each instance', min: 0 },
  { name: 'permits', text: 'Held permits of each instance', min: 0 },
  { name: 'waits', text: 'Waiting calls of each instance', min: 0 },
  { name: 'pairs', text: 'Free locks of each instance in a second', min: 0 },
];

/** What a fleet of the reader needs: the formula of the capacity page, with the constants of its numbers. */
export const CapacityCalculator = defineComponent({
  setup() {
    const fleet = reactive({ permits: 0, primaries: 1, ...EXAMPLE.fleet, instances: 1_000 });
    const rows = computed(() => needsRows(needsOf(constants, fleet), fleet.primaries));

    const field = ({ name, text, min }) =>
      h('label', { style: 'display: flex; justify-content: space-between; gap: 1em; margin: 0.25em 0' }, [
        text,
        h('input', {
          name,
          type: 'number',
          min,
          step: 'any',
          value: fleet[name],
          style: 'width: 7em; text-align: right; border: 1px solid var(--vp-c-divider)',
          onInput: ({ target }) => {
            // While a number is being typed, it may be none.
            if (target.valueAsNumber >= min) fleet[name] = target.valueAsNumber;
          },
        }),
      ]);
    const row = ([text, value]) => h('tr', [h('td', text), h('td', { style: 'text-align: right' }, value)]);

    return () =>
      h(
        'form',
        { class: 'capacity-calculator', 'aria-label': 'Calculator', onSubmit: (event) => event.preventDefault() },
        [
          h('p', 'Your fleet:'),
          ...FIELDS.map(field),
          h('table', { 'aria-live': 'polite' }, h('tbody', rows.value.map(row))),
        ],
      );
  },
});
