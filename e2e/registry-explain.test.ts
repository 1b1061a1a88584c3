import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AUDIENCE, type IdentityProvider, startIdentityProvider } from './fixtures/identity-provider.ts';
import { type Finished, RegistryFolder } from './registry/process.ts';

// `skep-registry explain` with tokens of a real identity provider, beside the answers of the server it explains.

const catalogue = (...names: readonly string[]): string =>
  JSON.stringify(names.map((name) => ({ name, description: name, version: '1.0.0' })));

let idp: IdentityProvider;
let folder: RegistryFolder;
let config: string;
beforeAll(async () => {
  idp = await startIdentityProvider();
  folder = await RegistryFolder.create();
  await folder.write('high.json', catalogue('io.acme/both', 'io.acme/only'));
  await folder.write('low.json', catalogue('io.acme/both'));
  config = await write('full.yaml', {
    authz: { roles: { superAdmin: [{ role: 'root' }], manageEntries: [{ role: 'writer', org: 'acme' }] } },
  });
  // Synchronises once, so that there is something to explain.
  await (await folder.serve(config)).stop();
});
afterAll(async () => {
  await folder.remove();
  await idp.stop();
});

async function write(name: string, auth: object): Promise<string> {
  const source = (of: string, claims: object) => ({
    name: of,
    file: { path: `${of}.json` },
    syncPolicy: { interval: '1h' },
    claims,
  });
  const provider = {
    name: 'corp',
    issuerUrl: idp.issuer,
    audience: AUDIENCE,
    allowPrivateIP: true,
    introspectionUrl: idp.introspection.url,
    clientId: idp.introspection.clientId,
    clientSecretFile: await folder.write('secret', idp.introspection.clientSecret),
  };
  return folder.write(
    name,
    JSON.stringify({
      sources: [source('high', { org: 'acme', team: ['a', 'b'] }), source('low', { org: 'acme' })],
      registries: [
        { name: 'all', sources: ['high', 'low'] },
        { name: 'gated', sources: ['high', 'low'], claims: { team: 'a' } },
      ],
      auth: { oauth: { providers: [provider] }, ...auth },
      storage: { path: 'registry.db' },
    }),
  );
}

const explain = (...args: readonly string[]): Promise<Finished> =>
  folder.run('explain', '--config', config, ...args);

async function tokenFile(
  claims: Readonly<Record<string, unknown>>,
  format: 'jwt' | 'opaque' = 'jwt',
): Promise<string> {
  return folder.write('token.txt', `${await idp.token(claims, { format })}\n`);
}

describe('with a token', () => {
  test.each(['jwt', 'opaque'] as const)('as %s prints every layer of the decision', async (format) => {
    const token = await tokenFile({ sub: 'ann', role: 'writer', org: 'acme', team: 'b' }, format);
    const about = ['--registry', 'gated', '--entry', 'io.acme/both'];
    const { code, stdout, stderr } = await explain('--token', token, ...about);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toBe(`mode full, caller "ann", manageEntries
no   role      superAdmin        no rule grants superAdmin: claim "role" has none of "root"; needed: satisfy one rule of auth.authz.roles.superAdmin
no   role      manageSources     no rule grants manageSources: none is configured; needed: satisfy one rule of auth.authz.roles.manageSources
no   role      manageRegistries  no rule grants manageRegistries: none is configured; needed: satisfy one rule of auth.authz.roles.manageRegistries
yes  role      manageEntries     the caller has the role
no   registry  gated             claim "team" of the caller lacks "a"; needed: the value "a"
no   entry     io.acme/both      claim "team" of the caller lacks "a"; needed: the value "a" (copy of high)
yes  entry     io.acme/both      the caller holds every claim of the resource (copy of low)
`);
  });

  test('says what the server then does', async () => {
    const running = await folder.serve(config);
    for (const claims of [
      { org: 'acme' },
      { org: 'acme', team: 'a' },
      { org: 'acme', team: ['a', 'b'] },
      { org: 'other' },
      { role: 'root' },
    ]) {
      const token = await idp.token({ sub: 'x', ...claims });
      const file = await folder.write('token.txt', token);
      const about = ['--registry', 'gated', '--entry', 'io.acme/only'];
      const { stdout } = await explain('--token', file, ...about, '--format', 'json');
      const findings: { layer: string; allowed: boolean }[] = JSON.parse(stdout).findings;
      const says = (layer: string): boolean =>
        findings.some((finding) => finding.layer === layer && finding.allowed);
      const answer = await fetch(`${running.open}/gated/v0.1/servers/io.acme%2Fonly/versions/latest`, {
        headers: { authorization: `Bearer ${token}` },
      });
      await answer.text();
      expect(answer.status).toBe(!says('registry') ? 403 : says('entry') ? 200 : 404);
    }
    await running.stop();
  });

  test('names the copy that is served in place of another', async () => {
    const token = await tokenFile({ sub: 'ann', org: 'acme', team: ['a', 'b'] });
    const { stdout } = await explain('--token', token, '--registry', 'all', '--entry', 'io.acme/both');
    expect(stdout).toMatch(/^yes {2}entry .*; the copy of high is served instead \(copy of low\)$/mu);
    const anywhere = await explain('--token', token, '--entry', 'io.acme/both');
    expect(anywhere.stdout).toMatch(/^yes {2}entry .*the resource \(copy of low\)$/mu);
  });

  test('asks about a source as the admin API scopes it', async () => {
    const token = await tokenFile({ sub: 'ann', org: 'acme' });
    const { stdout } = await explain('--token', token, '--source', 'high', '--entry', 'io.acme/only');
    expect(stdout).toMatch(
      /^no {3}source {4}high +the caller has no claim "team"; needed: all of "a", "b"$/mu,
    );
    expect(stdout).toMatch(/^no {3}entry {5}io\.acme\/only +the caller has no claim "team"/mu);
  });

  test.each([
    ['expired', () => idp.sign({ sub: 'x', exp: 1 }), 'the token has expired'],
    [
      'for another audience',
      () => idp.sign({ sub: 'x', aud: 'others', exp: 9_999_999_999 }),
      'the token is for another audience',
    ],
    ['of nobody', () => Promise.resolve('opaque-and-unknown'), 'the token is not active'],
  ])('%s fails with the reason and nothing of the token', async (_what, make, reason) => {
    const token = await make();
    const { code, stdout, stderr } = await explain('--token', await folder.write('token.txt', token));
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain(`Error: ${reason}; `);
    expect(stderr).not.toContain(token);
    expect(stderr.trimEnd()).not.toContain('\n');
  });

  test('fails while the identity provider is away, and says that it is', async () => {
    const token = await tokenFile({ sub: 'ann' });
    await idp.stop();
    const { code, stderr } = await explain('--token', token);
    await idp.start();
    expect(code).toBe(1);
    expect(stderr).toContain('Error: the identity provider does not answer; ');
  });
});

describe('without authorization', () => {
  test('says in auth-only mode that nothing is checked', async () => {
    const token = await tokenFile({ sub: 'ann' });
    const open = await write('auth-only.yaml', {});
    const { stdout } = await folder.run('explain', '--config', open, '--token', token, '--registry', 'gated');
    expect(stdout).toMatch(/^mode auth-only, caller "ann", no roles\n/u);
    expect(stdout).toMatch(/^yes {2}registry {2}gated +no authorization is configured in this mode$/mu);
  });

  test('needs to know no caller in anonymous mode', async () => {
    const open = await write('anonymous.yaml', { mode: 'anonymous' });
    const { code, stdout } = await folder.run('explain', '--config', open, '--entry', 'io.acme/only');
    expect(code).toBe(0);
    expect(stdout).toMatch(/^mode anonymous, caller "", no roles\n/u);
    expect(stdout).toMatch(/^yes {2}entry +io\.acme\/only +no authorization .*\(copy of high\)$/mu);
  });
});

test.each([
  [['--claims', '{}', '--token', 'x'], 'Error: --claims cannot be used together with --token; '],
  [['--token', 'none.txt'], 'Error: '],
  [['--claims', '[]'], 'Error: claims must be a JSON object; '],
  [['--claims', '{}', '--source', 'none'], 'Error: source not found: none; '],
  [['--claims', '{}', '--entry', 'io.acme/none'], 'Error: not found; '],
  [['--claims', '{}', '--type', 'thing'], 'Error: '],
])('fails with one line for %j', async (args, message) => {
  const { code, stdout, stderr } = await explain(...args);
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr.startsWith(message), stderr).toBe(true);
  expect(stderr.trimEnd()).not.toContain('\n');
});
