import { OptionDefaults } from 'typedoc';
import { ENTRY_POINTS } from '../../scripts/entry-points.mjs';

/** The API reference of the site. */
export default {
  entryPoints: ENTRY_POINTS.map(({ source }) => `../../${source}`),
  tsconfig: '../../tsconfig.esm.json',
  plugin: ['typedoc-plugin-markdown', 'typedoc-vitepress-theme'],
  out: '../../site/api',
  docsRoot: '../../site',
  readme: 'none',
  // `npm run typecheck` reports type errors, in a third of the time.
  skipErrorChecking: true,
  name: 'API',
  disableSources: true,
  // Members that errors inherit from Node.
  excludeExternals: true,
  excludePrivate: true,
  excludeInternal: true,
  githubPages: false,
  hideBreadcrumbs: true,
  hidePageHeader: true,
  parametersFormat: 'table',
  propertiesFormat: 'table',
  interfacePropertiesFormat: 'table',
  tableColumnSettings: { hideInherited: true, hideOverrides: true, hideSources: true },
  sidebar: {
    autoConfiguration: true,
    format: 'vitepress',
    pretty: false,
  },
  validation: {
    notExported: false,
    invalidLink: true,
  },
  treatValidationWarningsAsErrors: true,
  // Ours are explained in tools/reference/reference.mjs.
  blockTags: [...OptionDefaults.blockTags, '@allowed', '@remedy'],
};
