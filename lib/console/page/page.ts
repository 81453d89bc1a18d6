import { SCRIPT, SHELL, STYLE } from './page.generated.js';

/** What a browser loads: without files, so that bundlers carry it along. */
export const PAGE = { shell: SHELL, script: SCRIPT, style: STYLE } as const;
