import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { clientScenarios, runClientScenario, type ClientSuite } from './conformance/run-client.ts';
import { standInBrowser } from './fixtures/stand-in-browser.ts';
import { openUser, type TestUser } from './skep.ts';

// Signing in, as the official suite of each MCP revision asks it of clients, scenario by scenario: with the packed program and one home
// for all of them, and with the sign-in core alone where no flag says what a scenario is about.

const PROGRAM = 'e2e/fixtures/skep-as-client.ts';
const CORE = 'e2e/fixtures/sign-in-client.ts';
/** A client that proves who it is with a key, and callers that somebody else vouches for, are behind the interface of the core. */
const OF_CORE: ReadonlySet<string> = new Set([
  'auth/client-credentials-jwt',
  'auth/cross-app-access-complete-flow',
  'auth/enterprise-managed-authorization',
  'auth/wif-jwt-bearer',
]);
/** Servers of 2025-03-26 name no authorization server, and may not say that they know PKCE: what they want is refused today. */
const isOfOldRevision = (name: string): boolean => name.startsWith('auth/2025-03-26-');

let folder: string;
let user: TestUser;

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'skep-conformance-home-'));
  const password = path.join(folder, 'password');
  writeFileSync(password, 'correct horse battery staple', { mode: 0o600 });
  user = openUser({
    SKEP_SECRETS_PROVIDER: 'encrypted',
    SKEP_SECRETS_PASSWORD_FILE: password,
    BROWSER: standInBrowser(folder).program,
  });
});

afterAll(async () => {
  await user.end();
  rmSync(folder, { recursive: true });
});

describe.each<[ClientSuite, number]>([
  ['stable', 20],
  ['next', 31],
])('the client scenarios of the %s conformance suite', async (suite, least) => {
  const scenarios = (await clientScenarios(suite)).filter(
    ({ name }) => name.startsWith('auth/') && !isOfOldRevision(name),
  );

  test('are all there', () => {
    expect(scenarios.length).toBeGreaterThanOrEqual(least);
  });

  test.concurrent.each(scenarios)('$name', { timeout: 90_000 }, async (scenario) => {
    const program = OF_CORE.has(scenario.name) ? CORE : PROGRAM;
    const { isPassed, bad, passed } = await runClientScenario(suite, scenario, { program, env: user.env });
    expect(bad).toEqual([]);
    expect(passed).toBeGreaterThan(0);
    expect(isPassed).toBe(true);
  });
});
