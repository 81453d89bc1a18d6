import { chromium } from 'playwright-core';

/**
 * Types for the tests of the site. Without the packages of this folder they are `any`, so the type check needs none of them.
 *
 * @typedef {import('playwright-core').Browser} Browser
 * @typedef {import('playwright-core').BrowserContext} BrowserContext
 * @typedef {import('playwright-core').ConsoleMessage} ConsoleMessage
 * @typedef {import('playwright-core').Page} Page
 * @typedef {import('playwright-core').Response} Response
 */

/**
 * @param {string} program the path of Chromium
 * @returns {Promise<Browser>}
 */
export function launchBrowser(program) {
  return chromium.launch({
    executablePath: program,
    // Chromium has no sandbox for root, whom containers run as. It opens nothing but our own pages.
    chromiumSandbox: process.getuid?.() !== 0,
  });
}
