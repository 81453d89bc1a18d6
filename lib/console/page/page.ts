/** What a browser loads: without files, so that bundlers carry it along. */
export const PAGE = {
  shell: '<!doctype html><html lang="en"><title>Locks</title><script type="module" src="console.js"></script></html>\n',
  script: '',
  style: '',
} as const;
