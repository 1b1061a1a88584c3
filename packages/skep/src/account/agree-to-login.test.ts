import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commandUnderTest } from '../command-under-test.fixture.ts';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';
import { agreeTo } from './agree-to-login.ts';
import { loginWorld } from './login-world.fixture.ts';

/** A person who can keep a sign-in. */
const person = async () =>
  commandUnderTest({
    supervisor: 'none',
    keyrings: [new MemoryKeyring({ maxChars: 1_000_000 })],
    env: { SKEP_SECRETS_PROVIDER: 'keyring' },
  });
const LOGIN = 'login --device --allow-private-ip';

describe('what a registry would have somebody sign in with', () => {
  test('is shown, and asked once at a terminal, before anybody signs in', async () => {
    const [skep, world] = [await person(), await loginWorld()];
    const login = `${LOGIN} ${world.registry}`;
    world.offer = { audience: 'urn:mcp', scopes: ['openid', 'mcp'] };
    const refused = await skep.run(login, { agrees: false });
    expect([refused.status === 0, refused.out]).toEqual([false, '']);
    expect(refused.err).toContain(
      `  at    ${world.idp}\n  as    skep-cli\n  for   urn:mcp\n  with  openid mcp\n`,
    );
    expect(world.ofIdp.filter(({ line }) => line.startsWith('POST'))).toEqual([]);
    expect((await skep.run(login, { agrees: true })).out).toContain('as ann');
    const [idp, registry] = [new URL(world.idp).host, new URL(world.registry).host];
    const question = `Sign in at ${idp}, and show ${registry} what that gives?`;
    expect(skep.asked).toEqual([question, question]);
    // Agreed to once: neither asked again nor needed to be said where nobody can be asked.
    await skep.output('login --device');
    await skep.run(login, { agrees: false });
    expect(skep.asked).toHaveLength(2);
  });

  test('is asked anew where it changes', async () => {
    const around = { confirm: async () => true, terminal: { err: () => undefined } };
    const terms = { server: 'https://a.test', issuer: 'https://idp.test', clientId: 'x', scopes: ['one'] };
    const agreed = await agreeTo(terms, {}, around);
    const declining = { ...around, confirm: async () => false };
    await expect(agreeTo(terms, { agreed }, declining)).resolves.toBe(agreed);
    for (const change of [
      { server: 'https://b.test' },
      { issuer: 'https://idp.test/other' },
      { clientId: undefined },
      { audience: 'urn:cloud' },
      { scopes: ['one', 'two'] },
    ])
      await expect(agreeTo({ ...terms, ...change }, { agreed }, declining)).rejects.toThrow(
        'you do not sign in',
      );
  });

  test('needs the issuer where nobody can be asked', async () => {
    const [skep, world] = [await person(), await loginWorld()];
    expect(await skep.refusal(`${LOGIN} ${world.registry}`)).toMatch(
      /has you sign in at 127\.0\.0\.1:\d+, and nobody can be asked whether that is right; name its identity provider with --issuer/,
    );
    expect(world.ofIdp.filter(({ line }) => line.startsWith('POST'))).toEqual([]);
    await skep.output(`${LOGIN} --issuer ${world.idp} ${world.registry}`);
  });

  test('is nothing to agree to where the registry signs people in itself', async () => {
    const [skep, world] = [await person(), await loginWorld()];
    world.offer = { issuer: world.registry };
    expect(await skep.output(`${LOGIN} ${world.registry}`)).toContain('as ann');
    expect(world.ofIdp).toEqual([]);
  });

  test.each([
    [{ audience: 'https://mcp.acme.test' }, '--audience', 'https://mcp.acme.test'],
    [{ scopes: ['openid', 'https://cloud.test/.default'] }, '--scopes', 'https://cloud.test/.default'],
  ])('is no token for another address: %j', async (offer, flag, value) => {
    const [skep, world] = [await person(), await loginWorld()];
    world.offer = offer;
    const login = `${LOGIN} --issuer ${world.idp} ${world.registry}`;
    const { status, err } = await skep.run(login, { agrees: true });
    expect([status, err]).toEqual([1, expect.stringContaining('asks for a token that is good elsewhere')]);
    expect(err).toContain(`say it yourself with ${flag}`);
    expect(world.ofIdp.filter(({ line }) => line.startsWith('POST'))).toEqual([]);
    expect(await skep.output(`${login} ${flag} ${value}`)).toContain('as ann');
  });

  test('is not where the secret of a client goes', async () => {
    const [skep, world, evil] = [await person(), await loginWorld(), await loginWorld()];
    await writeFile(join(skep.cwd, 'secret'), 'a-secret');
    world.offer = { issuer: evil.idp };
    const login = `login --allow-private-ip --client-id job --client-secret-file secret ${world.registry}`;
    expect(await skep.refusal(login)).toContain('--client-secret-file needs --issuer');
    expect(world.ofRegistry).toEqual([]);
    const { status, err } = await skep.run(login, { agrees: true });
    expect([status, err]).toEqual([1, expect.stringContaining('needs --issuer')]);
    expect(await skep.output(`${login} --issuer ${world.idp}`)).toContain('as ann');
    // The issuer that was named before will do.
    await skep.output(login);
    expect(evil.ofIdp).toEqual([]);
    const shown = world.ofIdp.flatMap(({ authorization }) => authorization ?? []);
    expect(new Set(shown)).toEqual(new Set([`Basic ${Buffer.from('job:a-secret').toString('base64')}`]));
  });

  test('is what set-registry was told, by the line that it recommends', async () => {
    const [skep, world] = [await person(), await loginWorld()];
    world.offer = { issuer: 'http://127.0.0.1:1', client_id: 'other' };
    const said = `--issuer ${world.idp} --client-id mine --audience urn:mine --scopes mcp`;
    const set = `config set-registry ${world.registry}/registry/acme --allow-private-ip`;
    const { err } = await skep.run(`${set} ${said}`);
    const [, line = ''] = /sign in with skep (login \S+)/.exec(err) ?? [];
    await skep.output(`${line} --device`);
    expect(world.ofIdp.find(({ line: one }) => one === 'POST /device')?.body).toBe(
      'audience=urn%3Amine&scope=mcp&resource=urn%3Amine&client_id=mine',
    );
    expect(await skep.read(skep.places.configFile)).toContain('client_id: mine');
  });

  test('is a token for the server itself, as MCP has it, where it has RFC 9728 metadata alone', async () => {
    const [skep, world] = [await person(), await loginWorld()];
    world.offer = undefined;
    const login = `${LOGIN} --client-id skep-cli ${world.registry}`;
    expect((await skep.run(login, { agrees: true })).out).toContain('as ann');
    const asked = (): string | undefined => world.ofIdp.findLast(({ line }) => line === 'POST /device')?.body;
    expect(asked()).toContain(`resource=${encodeURIComponent(world.registry)}`);
    await skep.output(`${login} --issuer ${world.idp}`);
    expect(asked()).not.toContain('resource');
  });

  test('is not kept as what the person said', async () => {
    const [skep, world] = [await person(), await loginWorld()];
    await skep.run(`${LOGIN} ${world.registry}`, { agrees: true });
    const kept = await skep.read(skep.places.configFile);
    expect(kept).toContain(`server: ${world.registry}`);
    expect(kept).not.toMatch(/issuer|client_id|scopes/);
    world.offer = { client_id: 'renamed' };
    await skep.run('login --device', { agrees: true });
    expect(world.ofIdp.findLast(({ line }) => line === 'POST /token')?.body).toContain('client_id=renamed');
  });
});
