import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { useConsole } from './open-console.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Whatever passes would come with each of its elements. */
const RUN = 'axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations)';
const NARROW = { width: 360, height: 780 };
const WIDE = { width: 1_920, height: 1_080 };
/** A scheme changes no size, and a size no colour. */
const LOOKS = [
  ['light', NARROW],
  ['dark', WIDE],
  ...(process.env['TEST_SPEED'] === 'long'
    ? ([
        ['light', WIDE],
        ['dark', NARROW],
      ] as const)
    : []),
] as const;
const VIEWS = [
  'now',
  'locks',
  'lock?resource=stock%3Asku-2291',
  'blockers',
  'jobs',
  'job?name=invoice-reminders',
  'leaders',
  'instances',
];

interface Finding {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

describe('axe-core', () => {
  const open = useConsole();

  it.each(LOOKS)('finds nothing in any view: in the %s scheme, at %j', async (colorScheme, viewport) => {
    const actions = ['release', 'runJob', 'pauseJob', 'resumeJob'] as const;
    const { page, go, shop } = await open({ actions }, { viewport, colorScheme, bypassCSP: true });
    const check = async (place: string): Promise<void> => {
      if (!(await page.evaluate('"axe" in window'))) await page.evaluate(AXE);
      const violations: Finding[] = await page.evaluate(RUN);
      const found = violations.map(({ id, nodes }) => [id, nodes[0]!.html, nodes[0]!.failureSummary]);
      expect([place, found]).toEqual([place, []]);
      const overflow = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
      expect([place, overflow]).toEqual([place, 0]);
    };
    for (const place of VIEWS) {
      await go(place);
      await page.locator('table').first().waitFor();
      await check(place);
    }
    await go('lock?resource=stock%3Asku-2291');
    await page.getByRole('button', { name: 'Release…' }).click();
    await check('release');
    await page.keyboard.press('Escape');
    await go('jobs');
    await page.getByRole('button', { name: 'Pause cart-expiry' }).click();
    await check('pause');
    await page.keyboard.press('Escape');
    shop.instead = { status: 503, body: '{"error":{"code":"REDIS_UNAVAILABLE","message":"Redis does not answer."}}' };
    await page.getByText('Locks are unavailable.').waitFor();
    await check('away');
  });
});
