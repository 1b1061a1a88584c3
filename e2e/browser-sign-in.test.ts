import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { chromium, type ChromiumPage } from './fixtures/chromium.ts';
import { freePort } from './fixtures/free-port.ts';
import { guardedServer } from './fixtures/guarded-server.ts';
import { AUDIENCE } from './fixtures/identity-provider.ts';
import { LOGIN_CLIENT, startPeopleProvider } from './fixtures/people-provider.ts';
import { SCOPES, type SignInProvider, startSignInProvider } from './fixtures/sign-in-provider.ts';
import { allProcesses } from './processes.ts';
import { RegistryFolder } from './registry/process.ts';
import { component, title } from './require.ts';
import { ended, openUser, type SkepResult, type TestUser } from './skep.ts';

// The packed programs, real identity providers, and a real browser in which somebody signs in.

const browser = await component('chromium');
const DONE = 'You are signed in. You can close this window and go back to the terminal.';

/** Somebody in the middle of a command that opened the browser. */
interface SigningIn {
  readonly user: TestUser;
  readonly page: ChromiumPage;
  /** What became of the command. */
  readonly over: Promise<SkepResult>;
}

async function signingIn(args: readonly string[]): Promise<SigningIn> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'skep-browser-sign-in-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const password = path.join(folder, 'password');
  writeFileSync(password, 'correct horse battery staple', { mode: 0o600 });
  const opened = chromium();
  onTestFinished(() => opened[Symbol.asyncDispose]());
  const user = openUser({
    SKEP_SECRETS_PROVIDER: 'encrypted',
    SKEP_SECRETS_PASSWORD_FILE: password,
    BROWSER: opened.program,
  });
  onTestFinished(() => user.end());
  const child = user.start(args);
  onTestFinished(() => void child.kill());
  const over = ended(child);
  const page = await Promise.race([opened.page(), over.then(tooEarly)]);
  onTestFinished(() => page[Symbol.dispose]());
  return { user, page, over };
}

function tooEarly({ stdout, stderr }: SkepResult): never {
  throw new Error(`it ended before somebody signed in: ${stdout}${stderr}`);
}

/** The page that the command shows on `port`, for which the browser asked for nothing but itself. */
async function lastPage(page: ChromiumPage, port: number): Promise<unknown> {
  const own = String(await page.evaluate('location.href'));
  expect(new URL(own)).toMatchObject({ port: `${port}`, pathname: '/callback' });
  expect(page.requests.slice(page.requests.indexOf(own))).toEqual([own]);
  return page.evaluate('document.body.innerText.trim()');
}

describe.skipIf(!browser.available)(
  title('somebody with a browser who runs a remote server', browser),
  () => {
    interface Running extends SigningIn {
      readonly url: string;
      readonly idp: SignInProvider;
      readonly port: number;
    }

    async function running(): Promise<Running> {
      const far = await guardedServer(SCOPES);
      onTestFinished(() => far[Symbol.asyncDispose]());
      const idp = await startSignInProvider({ registers: true, libraryPages: true, resource: () => far.url });
      onTestFinished(() => idp.stop());
      far.guard = idp;
      const port = await freePort();
      const args = ['run', far.url, '--name', 'notes', '--remote-auth-timeout', '2m', '--remote-auth-callback-port', `${port}`]; // prettier-ignore
      return { ...(await signingIn(args)), url: far.url, idp, port };
    }

    test('signs in, allows what it asks for, and has its tools', async () => {
      const { user, page, over, url, idp, port } = await running();
      await page.type('[name=login]', 'ann');
      await page.type('[name=password]', 'anything');
      await page.follow('[type=submit]');
      const asked = await page.evaluate('document.querySelector(".login-card").innerText');
      for (const wanted of ['Authorize', url, ...SCOPES]) expect(asked).toContain(wanted);
      expect(idp.requests).not.toContain('POST /token');
      await page.follow('[type=submit]');
      expect(await lastPage(page, port)).toBe(DONE);
      const { code, stderr } = await over;
      expect(code, stderr).toBe(0);
      expect((await user.skep(['mcp', 'list', 'tools', 'notes'])).stdout).toContain('Counts its calls');
      const seen = allProcesses();
      expect(idp.given.size).toBeGreaterThan(3);
      expect([...idp.given].filter((secret) => seen.includes(secret))).toEqual([]);
    });

    test('does not allow it, is told so, and nothing is run', async () => {
      const { user, page, over, port } = await running();
      await page.follow('[href$=abort]');
      expect(await lastPage(page, port)).toMatch(/^You are not signed in: .*access_denied/u);
      const { code, stderr } = await over;
      expect([code, stderr]).toEqual([1, expect.stringContaining('access_denied')]);
      expect((await user.skep(['list', '--all'])).stdout).not.toContain('notes');
    });
  },
);

test.skipIf(!browser.available)(
  title('somebody signs in to a registry with a browser, and finds its servers', browser),
  async () => {
    const idp = await startPeopleProvider({ alice: {} });
    onTestFinished(() => idp.stop());
    const folder = await RegistryFolder.create();
    onTestFinished(() => folder.remove());
    const { open } = await protectedRegistry(folder, idp.issuer);
    const port = await freePort();
    const args = ['login', open, 'all', '--issuer', idp.issuer, '--allow-private-ip', '--callback-port', `${port}`]; // prettier-ignore
    const { user, page, over } = await signingIn(args);
    await page.type('[name=login]', 'alice');
    await page.follow('button');
    expect(await lastPage(page, port)).toBe(DONE);
    const { code, stdout, stderr } = await over;
    expect([code, stdout], stderr).toEqual([0, expect.stringContaining('as alice')]);
    expect((await user.skep(['search', 'weather'])).stdout).toContain('com.example/weather');
  },
);

/** Serves a catalogue of one server to whoever signs in. */
async function protectedRegistry(folder: RegistryFolder, issuerUrl: string): Promise<{ open: string }> {
  const remotes = [{ type: 'streamable-http', url: 'https://weather.example.com/mcp' }];
  const server = { name: 'com.example/weather', version: '1.0.0', description: 'Forecasts', remotes };
  await folder.write('catalogue.json', JSON.stringify({ servers: [{ server }] }));
  const port = await freePort();
  const login = { clientId: LOGIN_CLIENT, scopes: ['openid', 'offline_access', 'mcp'] };
  const provider = { name: 'corp', issuerUrl, audience: AUDIENCE, allowPrivateIP: true, login };
  const oauth = { resourceUrl: `http://127.0.0.1:${port}`, providers: [provider] };
  const file = { path: './catalogue.json' };
  const config = {
    sources: [{ name: 'catalogue', file, syncPolicy: { interval: '1h' } }],
    registries: [{ name: 'all', sources: ['catalogue'] }],
    auth: { mode: 'oauth', oauth },
    storage: { path: './registry.db' },
  };
  return folder.serve(await folder.write('registry.yaml', JSON.stringify(config)), port);
}
