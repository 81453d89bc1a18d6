// Opens a browser of this machine, for a test of what it shows.
import { isAbsolute } from 'node:path';
import { chromium } from 'playwright-core';
import { findOnPath } from '../../../scripts/setup/programs.mjs';
import { BROWSER, findTools } from './toolchain.mjs';

/**
 * @typedef {import('playwright-core').Browser} Browser
 * @typedef {import('playwright-core').BrowserContext} BrowserContext
 * @typedef {import('playwright-core').ConsoleMessage} ConsoleMessage
 * @typedef {import('playwright-core').Page} Page
 * @typedef {import('playwright-core').Response} Response
 */

/**
 * @param {readonly string[]} args further ones for Chromium
 * @returns {Promise<Browser>}
 * @throws Error with instructions to install one
 */
export async function launchBrowser(args = []) {
  const [program] = findTools([BROWSER]);
  return chromium.launch({
    executablePath: isAbsolute(program) ? program : await findOnPath(program, process.env),
    args: [...args],
    // Chromium has no sandbox for root, whom containers run as. It opens nothing but our own pages.
    chromiumSandbox: process.getuid?.() !== 0,
  });
}
