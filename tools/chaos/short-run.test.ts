import { itPasses } from './run/short-form.js';

itPasses('faults', 'faults of every kind break no rule', 3);
