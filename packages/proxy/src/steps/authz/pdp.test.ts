import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { tokenIdentity } from '@skep/auth/token/identity.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { expect, test } from 'vitest';
import { openPdp } from './pdp.ts';
import { readRules } from './rules.ts';

/** A decision point that permits all, and what it was told. */
async function permitting() {
  const told: string[] = [];
  const server = createServer(
    (req, res) =>
      void text(req).then((body) => {
        told.push(body);
        res.writeHead(200).end('{"allow":true}');
      }),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    told,
    rulesWith(context: object) {
      const http = { url };
      const rules = readRules({
        version: '1.0',
        type: 'httpv1',
        pdp: { http, claim_mapping: 'standard', context },
      });
      if (rules.type !== 'httpv1') throw new TypeError(rules.type);
      return rules;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const ARGS = '{ "n":9007199254740993, "x":1.0, "__proto__":{"a":1} }';

test.each([
  [{ include_args: true }, `{"mcp":{"args":${ARGS}}}`],
  [
    { include_args: true, include_operation: true },
    `{"mcp":{"feature":"tool","operation":"call","resource_id":"t","args":${ARGS}}}`,
  ],
  [{ include_operation: true }, '{"mcp":{"feature":"tool","operation":"call","resource_id":"t"}}'],
  [{}, '{}'],
])('a decision point is told what is sent on, to the character: %j', async (context, expected) => {
  await using point = await permitting();
  const pdp = openPdp(point.rulesWith(context), { name: 'gh', log: silentLog });
  const decide = pdp.decideFor(tokenIdentity({ sub: 'al' }, 'al'));
  expect(await decide({ kind: 'tool', id: 't', args: ARGS })).toBe(true);
  expect(point.told).toEqual([
    `{"principal":{"sub":"al"},"operation":"mcp:tool:call","resource":"mrn:mcp:gh:tool:t","context":${expected}}`,
  ]);
  pdp.close?.();
});

test('arguments that are there twice are denied where the decision point is told of them', async () => {
  await using point = await permitting();
  for (const [args, isAsked] of [
    ['{"a":1,"a":2}', false],
    ['{"a":[{"b":1,"\\u0062":2}]}', false],
    ['{"a":[{"b":1},{"b":2}]}', true],
  ] as const) {
    for (const tells of [true, false]) {
      const pdp = openPdp(point.rulesWith({ include_args: tells }), { name: 'gh', log: silentLog });
      const decide = pdp.decideFor(tokenIdentity({ sub: 'al' }, 'al'));
      expect(await decide({ kind: 'tool', id: 't', args })).toBe(isAsked || !tells);
      pdp.close?.();
    }
  }
  expect(point.told).toHaveLength(4);
});
