import { itPasses } from './run/short-form.js';

itPasses('topologies', 'locks on several servers break no rule that is promised there', 4);
