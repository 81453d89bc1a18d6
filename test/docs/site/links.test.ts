import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkLinks } from '../../../tools/docs/check-links.mjs';

describe('the check of the links of the site', () => {
  let site: string;

  beforeEach(async () => {
    site = await mkdtemp(join(tmpdir(), 'site-'));
    await writeFile(
      join(site, 'guide.html'),
      '<h1 id="here">Guide</h1><a href="./#there">up</a><a href="#here">here</a>',
    );
  });
  afterEach(() => rm(site, { recursive: true, force: true }));

  async function check(home: string, base?: string) {
    await writeFile(join(site, 'index.html'), `<h1 id="there">Home</h1>${home}`);
    return checkLinks(site, base);
  }

  it('follows links to pages, files and anchors', async () => {
    expect(await check('<a href="guide.html#here">1</a><a href="/guide.html">2</a><a href="/">3</a>')).toEqual({
      followed: 5,
      broken: [],
    });
  });

  it.each(['guide.html#nowhere', '/nowhere.html', '#nowhere', 'guide'])('finds that %s leads nowhere', async (link) => {
    expect((await check(`<a href="${link}">1</a>`)).broken).toEqual([`${link} on index.html`]);
  });

  it('finds a missing picture', async () => {
    expect((await check('<img src="picture.svg">')).broken).toEqual(['picture.svg on index.html']);
  });

  it('knows the path that the site is served under', async () => {
    const home = '<a href="/docs/guide.html#here">1</a><a href="/guide.html">2</a>';
    expect(await check(home, '/docs/')).toEqual({ followed: 4, broken: ['/guide.html on index.html'] });
  });

  it('leaves other hosts alone', async () => {
    expect(await check('<a href="https://redis.io/nowhere">1</a>')).toEqual({ followed: 2, broken: [] });
  });
});
