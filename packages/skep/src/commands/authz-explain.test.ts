import { describe, expect, test } from 'vitest';
import { commandUnderTest } from '../command-under-test.fixture.ts';

const POLICIES = [
  'permit(principal, action, resource) when { resource has readOnlyHint && resource.readOnlyHint };',
  '@id("editors") permit(principal in SkepGroup::"editors", action == Action::"call_tool", resource);',
  '@id("small") forbid(principal, action, resource) unless { context has arg_n && context.arg_n < 5 || resource.name != "count" };',
  'forbid(principal, action, resource == Tool::"odd") when { context.arg_x == 1 };',
  'permit(principal == Client::"me", action, resource is Prompt);',
];
const token = `x.${Buffer.from('{"sub":"eve","groups":["editors"]}').toString('base64url')}.x`;
const MACHINE = {
  supervisor: 'none',
  files: {
    'p.json': { version: '1.0', type: 'cedarv1', cedar: { policies: POLICIES } },
    'claims.json': { sub: 'ann', groups: ['readers'] },
    'token.txt': `${token}\n`,
    'opaque.txt': 'opaque',
    'broken.json': { version: '1.0', type: 'cedarv1', cedar: { policies: ['permit'] } },
  },
} as const;
const ANN = ['--claims', '{"sub":"ann","groups":["readers"]}'];
const EXPLAIN = ['authz', 'explain', '--config', 'p.json'];

const explained = async (...args: readonly string[]): Promise<readonly string[]> =>
  (await (await commandUnderTest(MACHINE)).output([...EXPLAIN, ...args])).trimEnd().split('\n');

describe('skep authz explain', () => {
  test('names the policy that permits', async () => {
    expect(await explained('--tool', 'look', '--hint', 'readOnlyHint', ...ANN)).toEqual([
      'yes  call_tool of "look" by Client::"ann" in SkepGroup::"readers"',
      '     policy0 permits it',
    ]);
  });

  test('says what would have to hold, where nothing permits', async () => {
    expect(await explained('--tool', 'look', '--claims', 'claims.json')).toEqual([
      'no   call_tool of "look" by Client::"ann" in SkepGroup::"readers"',
      '     no policy permits it',
      '     policy0 would permit it, if: resource has readOnlyHint; resource.readOnlyHint',
      '     policy1 (editors) would permit it, if: principal in SkepGroup::"editors"',
      '     policy4 would permit it, if: principal == Client::"me"; resource is Prompt',
    ]);
  });

  test('names the policy that forbids, and the one that would permit without it', async () => {
    expect(await explained('--tool', 'count', '--args', '{"n":9}', '--token', 'token.txt')).toEqual([
      'no   call_tool of "count" by Client::"eve" in SkepGroup::"editors"',
      '     policy2 (small) forbids it',
      '     policy1 (editors) permits it otherwise',
    ]);
    const [answer] = await explained('--tool', 'count', '--args', '{"n":4}', '--token', 'token.txt');
    expect(answer).toMatch(/^yes/u);
  });

  test('names the policy that cannot be evaluated', async () => {
    const lines = await explained('--tool', 'odd', '--token', 'token.txt');
    expect(lines[0]).toMatch(/^no/u);
    expect(lines[1]).toContain('policy3 cannot be evaluated, which denies: ');
    expect(lines[1]).toContain('arg_x');
  });

  test('asks for the person, where nobody else is named', async () => {
    const skep = await commandUnderTest(MACHINE);
    const said = await skep.output([...EXPLAIN, '--prompt', 'p']);
    expect(said).toMatch(/^no {3}get_prompt of "p" by Client::"/u);
  });

  test('says the same as JSON', async () => {
    const skep = await commandUnderTest(MACHINE);
    const said = await skep.output([...EXPLAIN, '--resource', 'file:///x', ...ANN, '--format', 'json']);
    expect(JSON.parse(said)).toMatchObject({
      by: 'policies',
      allowed: false,
      question: { kind: 'resource', id: 'file:///x' },
      caller: { uid: { type: 'Client', id: 'ann' }, parents: [{ type: 'SkepGroup', id: 'readers' }] },
      decidedBy: [],
      policies: [{ policy: 'policy0', effect: 'permit', applies: false }, { id: 'editors' }, {}, {}, {}],
    });
  });

  test('takes the policies of a server', async () => {
    const skep = await commandUnderTest({ ...MACHINE, supervisor: 'up' });
    await skep.output('run fake:1 --name a1 --transport stdio --authz-config p.json');
    const said = await skep.output(['authz', 'explain', 'a1', '--tool', 'look', ...ANN]);
    expect(said).toContain('policy0 would permit it');
    await skep.output('run fake:1 --name a2 --transport stdio');
    expect(await skep.refusal('authz explain a2 --tool look')).toContain('"a2" has no policies');
  });

  test.each([
    ['authz explain --tool x', 'whose policies?'],
    ['authz explain --config p.json', 'what is it about?'],
    ['authz explain --config p.json --tool x --prompt y', '--prompt'],
    ['authz explain --config p.json --tool x --args 7', '--args is not a JSON object'],
    ['authz explain --config p.json --tool x --hint readonly', '--hint "readonly" is none of'],
    ['authz explain --config p.json --tool x --token opaque.txt', '"opaque.txt" holds no JWT'],
    ['authz explain --config p.json --tool x --claims {', '--claims is not a JSON object'],
    ['authz explain --config broken.json --tool x', 'policy 0: '],
    ['authz explain nobody --tool x', 'nobody'],
  ])('refuses %s', async (line, message) => {
    expect(await (await commandUnderTest(MACHINE)).refusal(line)).toContain(message);
  });
});
