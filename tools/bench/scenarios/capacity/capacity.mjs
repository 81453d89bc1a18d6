import { deviation } from '../../capacity/check.mjs';
import { measureCapacity } from '../../capacity/measure.mjs';

/** How far a prediction may be off. */
const WITHIN_PERCENT = 20;

export const scenario = {
  name: 'capacity',
  title: 'What a fleet needs of Redis',
  group: 'capacity',
  meaning: 'Whether the formula of the capacity plan is right for a fleet that it was not made of.',
  how:
    'The constants are measured with 50 and with 200 instances, one kind of work after the other. Then 400 instances do all of it at ' +
    'the same time, and a small fleet uses a cluster.',
  metrics: [
    { id: 'predicted', label: 'predicted', digits: 1 },
    { id: 'measured', label: 'measured', digits: 1 },
    { id: 'percent', label: 'off by, %', digits: 0 },
  ],
  chart: {},
  targets: [
    {
      text: 'the quantity that is off most',
      of: (values) => Math.max(...Object.values(values).map(({ percent }) => Math.abs(percent))),
      atMost: WITHIN_PERCENT,
      unit: ' %',
    },
  ],
  async run(bench) {
    const plan = await measureCapacity(bench);
    const values = Object.fromEntries(
      plan.check.compared.map((one) => [
        one.name,
        { predicted: one.predicted, measured: one.measured, percent: deviation(one) * 100 },
      ]),
    );
    return { rounds: [{ order: Object.keys(values), values }], plan };
  },
};
