import { describe, expect, test } from 'vitest';
import { clientScenarios, runClientScenario, type ClientSuite } from './conformance/run-client.ts';

// Signing in, as the official suite of each MCP revision asks it of clients, scenario by scenario.

const CLIENT = 'e2e/fixtures/sign-in-client.ts';
/** Servers of 2025-03-26 name no authorization server, and may not say that they know PKCE: what they want is refused today. */
const isOfOldRevision = (name: string): boolean => name.startsWith('auth/2025-03-26-');

describe.each<[ClientSuite, number]>([
  ['stable', 20],
  ['next', 28],
])('the client scenarios of the %s conformance suite', async (suite, least) => {
  const scenarios = (await clientScenarios(suite)).filter(
    ({ name }) => name.startsWith('auth/') && !isOfOldRevision(name),
  );

  test('are all there', () => {
    expect(scenarios.length).toBeGreaterThanOrEqual(least);
  });

  test.concurrent.each(scenarios)('$name', { timeout: 90_000 }, async (scenario) => {
    const { isPassed, bad, passed } = await runClientScenario(suite, scenario, CLIENT);
    expect(bad).toEqual([]);
    expect(passed).toBeGreaterThan(0);
    expect(isPassed).toBe(true);
  });
});
