import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { localIdentity, tokenIdentity, type Identity } from '@skep/auth/token/identity.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { openCedar, type CedarAuthorizer } from './cedar.ts';
import type { Question } from './question.ts';
import { readRules, type CedarRules } from './rules.ts';

function rulesOf(policies: readonly string[], more: object = {}): CedarRules {
  const rules = readRules({ version: '1.0', type: 'cedarv1', cedar: { policies, ...more } });
  if (rules.type !== 'cedarv1') throw new TypeError();
  return rules;
}

const opened = (policies: readonly string[], more?: object): Promise<CedarAuthorizer> =>
  openCedar(rulesOf(policies, more), { name: 'gh', log: silentLog });

const someone = (claims: object = {}): Identity => tokenIdentity({ sub: 'al', ...claims }, 'al');
const tool = (id: string, more: Partial<Question> = {}): Question => ({ kind: 'tool', id, ...more });
const call = (args: unknown): Question => tool('t', { args: JSON.stringify(args) });

async function decide(policies: readonly string[], identity: Identity, question: Question, more?: object) {
  return (await opened(policies, more)).decideFor(identity)(question);
}
const when = (condition: string): string => `permit(principal, action, resource) when { ${condition} };`;
const holds = (condition: string, claims: object, question = tool('t'), more?: object) =>
  decide([when(condition)], someone(claims), question, more);

describe('a policy', () => {
  test.each<[string, string, Question]>([
    ['a tool', 'permit(principal, action == Action::"call_tool", resource == Tool::"t");', tool('t')],
    ['a prompt', 'permit(principal, action == Action::"get_prompt", resource == Prompt::"p");', { kind: 'prompt', id: 'p' }],
    ['a resource by its exact URI', 'permit(principal, action == Action::"read_resource", resource == Resource::"file:///a b?x=1");', { kind: 'resource', id: 'file:///a b?x=1' }],
    ['whatever is of one server', 'permit(principal, action, resource in MCP::"gh");', tool('t')],
    ['one client', 'permit(principal == Client::"al", action, resource);', tool('t')],
    ['what is done', when('action.operation == "call_tool" && resource.operation == "call" && resource.feature == "tool"'), tool('t')],
    ['what is done with a prompt', when('action.operation == "get_prompt" && resource.operation == "get" && resource.feature == "prompt" && resource.name == "p" && resource.arg_a == 1'), { kind: 'prompt', id: 'p', args: '{"a":1}' }],
    ['what is done with a resource', when('action.operation == "read_resource" && resource.operation == "read" && resource.feature == "resource" && resource.name == "p"'), { kind: 'resource', id: 'p' }],
    ['a prompt of one server', 'permit(principal, action, resource in MCP::"gh");', { kind: 'prompt', id: 'p' }],
    ['a URI', when('resource.uri like "file:///*" && resource.name == resource.uri'), { kind: 'resource', id: 'file:///x' }],
  ])('names %s', async (_name, policy, question) => {
    expect(await decide([policy], someone(), question)).toBe(true);
    expect(await decide([policy.replace(/"(?:t|p|al|gh|call|get|read)"|"file:[^"]*"/u, '"other"')], someone(), question)).toBe(false);
  }); // prettier-ignore

  test('that is not there permits nothing, and one that forbids counts before all', async () => {
    const permit = 'permit(principal, action, resource);';
    expect(await decide([permit], someone(), tool('t'))).toBe(true);
    expect(await decide(['permit(principal == Client::"x", action, resource);'], someone(), tool('t'))).toBe(
      false,
    );
    expect(await decide([permit, 'forbid(principal, action, resource);'], someone(), tool('t'))).toBe(false);
  });

  test('that cannot be evaluated denies, whatever the others say', async () => {
    const policies = ['permit(principal, action, resource);', 'forbid(principal, action, resource) when { context.arg_x == 1 };'];
    expect(await decide(policies, someone(), tool('t'))).toBe(false);
    expect(await decide(policies, someone(), call({ x: 2 }))).toBe(true);
    const cedar = await opened(policies);
    expect(cedar.explain(someone(), tool('t'))).toMatchObject({
      allowed: false,
      decidedBy: ['policy0'],
      errors: [{ policy: 'policy1', message: expect.stringContaining('arg_x') }],
    });
  }); // prettier-ignore
});

describe('claims', () => {
  test.each<[string, string, object]>([
    ['text', 'principal.claim_a == "x" && context.claim_a == "x"', { a: 'x' }],
    ['whole numbers', 'context.claim_n + 1 == 6', { n: 5 }],
    ['minus zero', 'context.claim_n == 0', { n: -0 }],
    ['other numbers', 'context.claim_n.lessThan(decimal("1.2346"))', { n: 1.234_51 }],
    ['yes and no', 'context.claim_b', { b: true }],
    ['lists', 'context.claim_l.contains("b")', { l: ['a', null, 'b'] }],
    ['objects', 'context.claim_o.a.b == 1', { o: { a: { b: 1, c: null } } }],
    ['names with anything in them', 'context["claim_https://x.test/y"] == 1', { 'https://x.test/y': 1 }],
    ['the whole context', 'context == {claim_sub: "al", claim_a: 1}', { a: 1 }],
    ['objects that look like entities, as nothing', '!(context.claim_o has __entity) && context.claim_o.x == 1', { o: { __entity: { type: 'A', id: 'b' }, x: 1 } }],
  ])('are %s', async (_name, condition, claims) => {
    expect(await holds(condition, claims)).toBe(true);
    expect(await holds(`!(${condition})`, claims)).toBe(false);
  }); // prettier-ignore

  test.each([{ a: null }, { a: 1e300 }, { a: 2 ** 53 }, { a: '\uD800' }, {}])(
    'that Cedar cannot have are not there: %j',
    async (claims) => expect(await holds('context has claim_a', claims)).toBe(false),
  );

  test('are dropped below the tenth level', async () => {
    const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) });
    const path = (levels: number): string => `context.claim_o${'.a'.repeat(levels)} == 1`;
    expect(await holds(path(10), { o: nested(10) })).toBe(true);
    expect(await holds(path(11), { o: nested(11) })).toBe(false);
  });

  const member = (group: string, type = 'SkepGroup') =>
    `permit(principal in ${type}::"${group}", action, resource);`;
  test.each<[string, object, object]>([
    ['groups', { groups: ['x', 'g'] }, {}],
    ['groups as one text', { groups: 'g' }, {}],
    ['roles', { roles: ['g'] }, {}],
    ['groups of Cognito', { 'cognito:groups': ['g'] }, {}],
    ['a named claim', { teams: ['g'], groups: ['x'] }, { group_claim_name: 'teams' }],
    ['a claim on a path', { realm: { roles: ['g'] } }, { group_claim_name: 'realm.roles' }],
    ['a claim whose name has dots', { 'https://x.test/g': ['g'] }, { group_claim_name: 'https://x.test/g' }],
    ['groups, where the named claim has none', { groups: ['g'] }, { group_claim_name: 'teams' }],
    ['roles beside groups', { groups: ['x', 'g'], r: 'g' }, { role_claim_name: 'r' }],
    ['a parent that entities give a group', { groups: ['sub'] }, { entities_json: '[{"uid":{"type":"SkepGroup","id":"sub"},"attrs":{},"parents":[{"type":"SkepGroup","id":"g"}]}]' }],
  ])('put a caller into its groups: %s', async (_name, claims, more) => {
    expect(await decide([member('g')], someone(claims), tool('t'), more)).toBe(true);
    expect(await decide([member('other')], someone(claims), tool('t'), more)).toBe(false);
  }); // prettier-ignore

  test.each([
    [{ groups: ['x'], roles: ['g'] }],
    [{ roles: ['x'], 'cognito:groups': ['g'] }],
    [{ groups: [], roles: ['g'] }],
  ])('name groups by the first of the usual ones that is there, and by no other: %j', async (claims) => {
    expect(await decide([member('g')], someone(claims), tool('t'))).toBe(false);
  });

  test('name groups of the type that the configuration says', async () => {
    const more = { group_entity_type: 'Team' };
    expect(await decide([member('g', 'Team')], someone({ groups: ['g'] }), tool('t'), more)).toBe(true);
  });

  test('of several values are sets, however they are written', async () => {
    const more = { multi_valued_claims: ['scope'] };
    for (const scope of ['read write', ['read', 'write']])
      expect(
        await holds('context.claim_scope.contains("write") && principal.claimset_scope.contains("read")', { scope }, tool('t'), more),
      ).toBe(true);
  }); // prettier-ignore

  test('without a subject permit nothing', async () => {
    expect(await decide(['permit(principal, action, resource);'], tokenIdentity({}, ''), tool('t'))).toBe(
      false,
    );
  });
});

describe('arguments', () => {
  test.each<[string, unknown]>([
    ['context.arg_a == "x" && resource.arg_a == "x"', { a: 'x' }],
    ['context.arg_level <= context.claim_clearance', { level: 3 }],
    ['context.arg_l_present && !(context has arg_l)', { l: [1] }],
    ['context.arg_o_present', { o: {} }],
    ['context.arg_n_present', { n: null }],
    ['context == {claim_clearance: 4, claim_sub: "al", arg_a: 1, arg_b_present: true}', { a: 1, b: [] }],
  ])('are seen: %s', async (condition, args) => {
    expect(await holds(condition, { clearance: 4 }, call(args))).toBe(true);
  });

  test('that are there twice are refused, where a policy asks after them', async () => {
    const twice = tool('t', { args: '{"a":1,"b":1,"a":2}' });
    expect(await holds('!(context has arg_a) || true', {}, twice)).toBe(false);
    expect(await holds('context.arg_b == 1', {}, twice)).toBe(true);
    expect(await holds('context != {x: 1}', {}, twice)).toBe(false);
  });

  test.each(['9007199254740993', '1e300', '"\\ud800"'])(
    'that Cedar cannot hold are refused, where a policy asks after them: %s',
    async (value) => {
      const forbidding = [
        'permit(principal, action, resource);',
        'forbid(principal, action, resource) when { context has arg_a && context.arg_a != 1 };',
      ];
      const asked = (args: string) => decide(forbidding, someone(), tool('t', { args }));
      expect(await asked(`{"a":${value}}`)).toBe(false);
      expect(await asked(`{"a":1,"b":${value}}`)).toBe(true);
    },
  );

  test('that servers may take for others are refused, where a policy asks after these', async () => {
    for (const args of ['{"a":1,"A":2}', '{"A":2}'])
      expect(await holds('!(context has arg_a) || true', {}, tool('t', { args }))).toBe(false);
    expect(await holds('context.arg_b == 1', {}, tool('t', { args: '{"b":1,"a":1,"A":2}' }))).toBe(true);
    expect(await holds('context != {x: 1}', {}, tool('t', { args: '{"a":1,"A":2}' }))).toBe(false);
  });

  test.each([
    'forbid(principal, action, resource) when { context has arg_path && context.arg_path like "/etc*" };',
    'forbid(principal, action, resource) when { context == {claim_sub: "al", arg_path: "/etc"} };',
  ])('that servers may take for others are refused beside a policy that sees the whole context: %s', async (forbid) => {
    const policies = [when('context != {claim_x: 1}'), forbid];
    const asked = (args: object) => decide(policies, someone(), call(args));
    expect(await asked({ path: '/home' })).toBe(true);
    expect(await asked({ path: '/etc' })).toBe(false);
    expect(await asked({ Path: '/etc' })).toBe(false);
    expect(await asked({ paths: '/etc' })).toBe(true);
  }); // prettier-ignore
});

test('what a server says of a tool counts, and what the configuration says of it unless the server does', async () => {
  const hint = 'resource has readOnlyHint && resource.readOnlyHint';
  expect(await holds(hint, {}, tool('t', { hints: { readOnlyHint: true } }))).toBe(true);
  expect(await holds(hint, {}, tool('t', { hints: { readOnlyHint: false } }))).toBe(false);
  expect(await holds(hint, {})).toBe(false);
  const entities = [
    { uid: { type: 'Tool', id: 't' }, attrs: { readOnlyHint: true, owner: 'al' }, parents: [] },
  ];
  const more = { entities_json: JSON.stringify(entities) };
  expect(await holds(`resource.owner == "al" && ${hint}`, {}, tool('t'), more)).toBe(true);
  expect(await holds(hint, {}, tool('t', { hints: { readOnlyHint: false } }), more)).toBe(false);
});

test.each([
  ['resource has openWorldHint', true],
  ['resource["readOnlyHint"]', true],
  ['context == {claim_sub: "al"}', false],
  ['resource.name == "readOnlyHint"', false],
])(
  'the server is asked for its tools where a policy heeds what it says of them: %s',
  async (condition, heeds) => {
    expect((await opened([when(condition)])).heedsHints).toBe(heeds);
  },
);

test('names that are no text to Cedar, or empty, are refused', async () => {
  for (const id of ['', '\uD800'])
    expect(await decide(['permit(principal, action, resource);'], someone(), tool(id))).toBe(false);
});

describe('a configuration is refused', () => {
  test.each<[string, readonly string[], object, string]>([
    ['with a syntax error', ['permit(principal, action, resource);', '\n  permit(principal action);'], {}, 'policy 1: failed to parse policy from string: unexpected token `action` at line 2, column 20'],
    ['with two policies in one', ['permit(principal, action, resource); permit(principal, action, resource);'], {}, 'policy 0'],
    ['with a template', ['permit(principal == ?principal, action, resource);'], {}, 'policy 0'],
    ['with entities that are none', ['permit(principal, action, resource);'], { entities_json: '[{"uid":7}]' }, '"cedar.entities_json"'],
    ['with an entity twice', ['permit(principal, action, resource);'], { entities_json: '[{"uid":{"type":"A","id":"b"},"attrs":{},"parents":[]},{"uid":{"type":"A","id":"b"},"attrs":{"x":1},"parents":[]}]' }, 'duplicate entity'],
  ])('%s', async (_name, policies, more, message) => {
    await expect(opened(policies, more)).rejects.toMatchObject({
      code: 'usage/invalid-value',
      message: expect.stringContaining(message),
    });
  }); // prettier-ignore
});

describe('decisions that are cached', () => {
  const CONDITIONS = [
    'context has arg_a && context.arg_a == 1',
    'principal has claim_a && principal.claim_a == 1',
    'resource has readOnlyHint && resource.readOnlyHint',
    'context == {claim_sub: "al"}',
    'principal in SkepGroup::"g"',
    'if context has claim_a then context.claim_b else true',
  ];
  const claims = fc.record(
    { a: fc.constantFrom<unknown>(1, 2, '1', null), b: fc.boolean(), groups: fc.constantFrom('g', 'h'), exp: fc.nat() },
    { requiredKeys: [] },
  ); // prettier-ignore
  const question = fc.record(
    {
      kind: fc.constantFrom('tool' as const, 'resource' as const),
      id: fc.constantFrom('t', 'u'),
      args: fc.constantFrom('{"a":1}', '{"a":2}', '{"b":1}', '{"a":1,"a":2}', '{"a":[]}'),
      hints: fc.record({ readOnlyHint: fc.boolean(), openWorldHint: fc.boolean() }, { requiredKeys: [] }),
    },
    { requiredKeys: ['kind', 'id'] },
  );

  test('are what would be decided anew, in any order, for any caller', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.subarray(CONDITIONS, { minLength: 1 }),
        fc.array(fc.tuple(claims, question), { minLength: 1, maxLength: 30 }),
        async (conditions, asked) => {
          const cedar = await opened(conditions.map(when));
          for (const [said, one] of asked) {
            const identity = someone(said);
            expect(cedar.decideFor(identity)(one)).toBe(cedar.explain(someone(said), one).allowed);
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  test('do not depend on when the local identity was made', async () => {
    const cedar = await opened([when('principal.claim_sub == "me"')]);
    expect(cedar.relevant).toEqual({ names: new Set(['claim_sub']), isAll: false });
    for (const now of [0, 1e12]) expect(cedar.decideFor(localIdentity('me', now))(tool('t'))).toBe(true);
  });
});
