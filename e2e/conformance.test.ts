import { describe, expect, test } from 'vitest';
import { SETTINGS } from '@skep/proxy/doubles/running-proxy.ts';
import type { Backend } from '@skep/proxy/backend/backend.ts';
import type { OptionalSteps } from '@skep/proxy/call/chain.ts';
import { startProxy } from '@skep/proxy/start.ts';
import { runConformance, type Score } from './conformance/run.ts';
import {
  conformanceCommand,
  conformanceOverHttp,
  modernCommand,
  spawnedBackend,
} from './fixtures/spawned-server.ts';

const proxyFor = (backend: Backend, steps: OptionalSteps = {}) => startProxy({ ...SETTINGS, backend, steps });

/** A step that looks inside, so that no bytes are relayed. */
const LOOKS_INSIDE: OptionalSteps = { authorization: (_call, next) => next() };

const SCENARIOS = 30;

describe('the official conformance suite', () => {
  test('passes against the fixture through a stdio proxy as it does against the fixture itself', async () => {
    using direct = await conformanceOverHttp();
    using piped = spawnedBackend(conformanceCommand('stdio'));
    const proxy = await proxyFor(piped.backend);
    try {
      const through = await runConformance(proxy.url);
      const without = await runConformance(direct.url);
      expect(Object.fromEntries(through)).toEqual(Object.fromEntries(without));
      expect(through.size).toBe(SCENARIOS);
      expect([...through].filter(([, { failed }]) => failed > 0)).toEqual([]);
    } finally {
      await proxy.close();
    }
  });

  test('passes through the forwarding proxy in front of the same fixture over HTTP', async () => {
    using direct = await conformanceOverHttp();
    const proxy = await proxyFor({ kind: 'http', target: new URL(new URL(direct.url).origin) });
    try {
      const through = await runConformance(proxy.url);
      expect(through.size).toBe(SCENARIOS);
      expect([...through].filter(([, { failed }]) => failed > 0)).toEqual([]);
    } finally {
      await proxy.close();
    }
  });
});

const MODERN_SCENARIOS = 50;
/** Not required of a server: extensions that the fixtures have not, and what the suite's own server cannot. */
const isRequired = (name: string): boolean =>
  !name.startsWith('tasks-') &&
  name !== 'json-schema-2020-12' &&
  name !== 'http-custom-header-server-validation';

const failuresIn = (scores: ReadonlyMap<string, Score>): object =>
  Object.fromEntries([...scores].map(([name, { failed }]) => [name, failed]));

describe('what MCP 2026-07-28 requires of servers', () => {
  test('holds through each way to a modern server as it does without', { timeout: 240_000 }, async () => {
    using direct = await conformanceOverHttp(modernCommand('http'));
    const target = new URL(new URL(direct.url).origin);
    using piped = spawnedBackend(modernCommand('stdio'));
    const without = await runConformance(direct.url, '2026-07-28');
    expect(without.size).toBe(MODERN_SCENARIOS);
    expect([...without].filter(([name, { failed }]) => isRequired(name) && failed > 0)).toEqual([]);
    for (const [backend, steps] of [
      [piped.backend, {}],
      [{ kind: 'http', target }, {}],
      [{ kind: 'http', target }, LOOKS_INSIDE],
    ] as const) {
      const proxy = await proxyFor(backend, steps);
      try {
        const through = await runConformance(proxy.url, '2026-07-28');
        expect(failuresIn(through)).toEqual(failuresIn(without));
        // A check of several streams counts those that are, and the server itself answers in one piece.
        const lacking = [...without].filter(
          ([name, { passed }]) => (through.get(name)?.passed ?? 0) < passed,
        );
        expect(lacking).toEqual([]);
      } finally {
        await proxy.close();
      }
    }
  });

  test(
    'holds in front of a legacy server, but for what only a modern one can say',
    { timeout: 240_000 },
    async () => {
      using direct = await conformanceOverHttp();
      using piped = spawnedBackend(conformanceCommand('stdio'));
      const target = new URL(new URL(direct.url).origin);
      for (const [backend, steps] of [
        [piped.backend, {}],
        [{ kind: 'http', target }, {}],
        [{ kind: 'http', target }, LOOKS_INSIDE],
      ] as const) {
        const proxy = await proxyFor(backend, steps);
        try {
          const through = await runConformance(proxy.url, '2026-07-28');
          const failing = [...through].filter(([name, { failed }]) => isRequired(name) && failed > 0);
          // A question has no name of the server's choice, and a tool cannot refuse for a capability with a code of its own.
          expect(failing.map(([name, { failed }]) => `${name} ${failed}`)).toEqual([
            'input-required-result-basic-elicitation 1',
            'server-stateless 2',
          ]);
        } finally {
          await proxy.close();
        }
      }
    },
  );
});
