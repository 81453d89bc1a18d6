import { itPasses } from './run/short-form.js';

itPasses('storms', 'a fleet works again after all of it was struck at once');
