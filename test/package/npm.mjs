import { succeed } from './program.mjs';

/** @returns {Promise<string>} what npm printed. Rejects with that if it fails */
export function npm(args, { env, ...options }) {
  return succeed('npm', args, { ...options, env: { npm_config_update_notifier: 'false', ...env } });
}
