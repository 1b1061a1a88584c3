import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { expect, onTestFinished, test } from 'vitest';
import { createSignInFetch } from '@skep/auth/sign-in/sign-in-fetch.ts';
import { signIn } from '@skep/auth/sign-in/sign-in.ts';
import { places } from '@skep/core/files/places.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { signInStore } from '@skep/cli/secrets/sign-in-store.ts';
import { SCOPES, startSignInProvider } from './fixtures/sign-in-provider.ts';
import { visit } from './fixtures/stand-in-browser.ts';
import { repoRoot } from './require.ts';

const KEY = 'shared';
const RESOURCE = 'http://127.0.0.1:9/mcp';
const ROUNDS = 200;

/** Asks a process for the token that is good an hour later. */
function openProcess(home: string, env: NodeJS.ProcessEnv): () => Promise<string> {
  const program = path.join(repoRoot, 'e2e/fixtures/token-process.ts');
  const child: ChildProcess = spawn(process.execPath, [program, home, KEY], {
    env,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(async () => {
    const ended = child.exitCode === null ? once(child, 'exit') : undefined;
    child.kill();
    await ended;
  });
  if (child.stdout === null) throw new Error('the process has no output');
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ready = lines.next();
  return async () => {
    await ready;
    child.stdin?.write('later\n');
    const { value } = await lines.next();
    return String(value);
  };
}

test(
  'two processes that share a store never break a rotating refresh token',
  { timeout: 180_000 },
  async () => {
    const provider = await startSignInProvider({ registers: true, opaque: true, resource: () => RESOURCE });
    onTestFinished(() => provider.stop());
    const home = mkdtempSync(path.join(os.tmpdir(), 'skep-shared-'));
    onTestFinished(() => rmSync(home, { recursive: true, force: true }));
    const env = { SKEP_SECRETS_PROVIDER: 'encrypted', SKEP_SECRETS_PASSWORD: 'correct horse' };
    const { signal } = new AbortController();
    const where = places({ env: {}, home, platform: 'linux', temp: home });
    const store = signInStore({ env, places: where, platform: 'linux', uid: process.getuid?.(), signal });
    const fetching = createSignInFetch();
    onTestFinished(() => fetching.close());
    const person = { show() {}, open: async (address: string) => void (await visit(address)) };
    const services = { fetch: fetching, clock: systemClock, log: silentLog, person };
    const mayBePrivate = { resource: true, issuer: true };
    const target = {
      resource: RESOURCE,
      issuer: provider.issuer,
      callbackPort: 0,
      scopes: SCOPES,
      mayBePrivate,
    };
    await store.change(KEY, () => signIn(target, 'browser', services));
    const both = [
      openProcess(home, { ...process.env, ...env }),
      openProcess(home, { ...process.env, ...env }),
    ];
    for (let round = 1; round <= ROUNDS; round += 1) {
      const tokens = await Promise.all(both.map((ask) => ask()));
      expect(new Set(tokens).size, tokens.join(' ')).toBe(1);
      expect(await provider.isGood(tokens[0] ?? '')).toBe(true);
    }
    expect(provider.refreshes()).toEqual({ done: ROUNDS, refused: 0 });
  },
);
