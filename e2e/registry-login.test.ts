import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { AUDIENCE } from './fixtures/identity-provider.ts';
import { freePort } from './fixtures/free-port.ts';
import { type GuardedServer, guardedServer } from './fixtures/guarded-server.ts';
import {
  LOGIN_CLIENT,
  PIPELINE,
  type PeopleProvider,
  startPeopleProvider,
} from './fixtures/people-provider.ts';
import { standInBrowser, visit } from './fixtures/stand-in-browser.ts';
import { allProcesses } from './processes.ts';
import { RegistryFolder, type Running } from './registry/process.ts';
import { ended, openUser, printed, type TestUser } from './skep.ts';

// The packed programs and a real identity provider: who signed in sees what they may see, and nobody else does.

const PEOPLE = {
  alice: { org: 'acme' },
  paula: { org: 'acme', team: 'platform', role: 'publisher' },
  bob: { org: 'other' },
  pipeline: { org: 'acme', team: 'platform', role: 'publisher' },
};
const DOCUMENT = {
  name: 'com.example/linter',
  version: '1.0.0',
  description: 'Lints',
  remotes: [{ type: 'streamable-http', url: 'https://linter.example.com/mcp' }],
};

let idp: PeopleProvider;
let far: GuardedServer;
let folder: RegistryFolder;
let registry: Running;
const users: TestUser[] = [];

beforeAll(async () => {
  [idp, folder] = [await startPeopleProvider(PEOPLE), await RegistryFolder.create()];
  far = await guardedServer([]);
  far.guard = { issuer: idp.issuer, isGood: async () => true };
  const port = await freePort();
  const catalogue = {
    servers: [
      ['com.example/weather', 'Forecasts', DOCUMENT.remotes[0]?.url],
      ['com.example/near', 'Is on this machine', far.url],
    ].map(([name, description, url]) => ({
      server: { name, version: '1.0.0', description, remotes: [{ type: 'streamable-http', url }] },
    })),
  };
  await folder.write('catalogue.json', JSON.stringify(catalogue));
  const config = {
    sources: [
      {
        name: 'catalogue',
        file: { path: './catalogue.json' },
        syncPolicy: { interval: '1h' },
        claims: { org: 'acme' },
      },
      { name: 'published', managed: {} },
    ],
    registries: [
      { name: 'acme', claims: { org: 'acme' }, sources: ['catalogue', 'published'] },
      { name: 'open', sources: ['catalogue'] },
    ],
    auth: {
      mode: 'oauth',
      oauth: {
        resourceUrl: `http://127.0.0.1:${port}`,
        providers: [
          {
            name: 'corp',
            issuerUrl: idp.issuer,
            audience: AUDIENCE,
            allowPrivateIP: true,
            login: { clientId: LOGIN_CLIENT, scopes: ['openid', 'offline_access', 'mcp'] },
          },
        ],
      },
      authz: { roles: { manageEntries: [{ role: 'publisher', org: 'acme' }] } },
    },
    storage: { path: './registry.db' },
  };
  registry = await folder.serve(await folder.write('registry.yaml', JSON.stringify(config)), port);
});
afterAll(async () => {
  for (const user of users) await user.end();
  await folder.remove();
  await far[Symbol.asyncDispose]();
  await idp.stop();
});

async function userAs(person: string): Promise<TestUser> {
  const user = openUser({
    SKEP_SECRETS_PASSWORD: 'correct horse',
    BROWSER: standInBrowser(folder.path, person).program,
    SKEP_RUNTIME: 'sandbox',
  });
  users.push(user);
  return user;
}

async function output(
  user: TestUser,
  line: string,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { code, stdout, stderr } = await user.skep(line.split(' '), { env });
  expect([line, code, stderr]).toEqual([line, 0, expect.anything()]);
  return stdout;
}

async function refusal(
  user: TestUser,
  line: string,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { code, stdout, stderr } = await user.skep(line.split(' '), { env });
  expect([line, code, stdout]).toEqual([line, 1, '']);
  return stderr;
}

const host = (): string => new URL(registry.open).host;

/** Signs in by the browser, on a port that no other test has. */
async function signIn(user: TestUser, more = 'acme'): Promise<string> {
  const line = `login --issuer ${idp.issuer} ${registry.open} ${more} --allow-private-ip --callback-port ${await freePort()}`;
  return output(user, line.replaceAll(/ +/g, ' '));
}

/** Of a token that is to end soon: a machine that is busy still has the time to sign in with it. */
const SHORT_MS = 4_000;

describe('skep login', () => {
  test('signs in by the browser, with nothing but the address', async () => {
    const user = await userAs('alice');
    expect(await signIn(user)).toBe(
      `Signed in to ${host()} as alice\nServers are now looked up in acme; also there: open\n`,
    );
    expect(await output(user, 'whoami')).toMatch(
      /Signed in as: +alice\n(?:.*\n)*Registries: +acme \(in use\), open\n/,
    );
    expect(await output(user, 'search weather')).toContain('com.example/weather');
    expect(await output(user, 'registry list')).toContain('com.example/weather');
    expect(await output(user, 'info com.example/weather')).toContain('Forecasts');
    // A completion gives up after two seconds, which a busy machine can need to begin.
    await expect
      .poll(() => output(user, 'complete -- run com'), { timeout: 30_000 })
      .toContain('com.example/weather');
  });

  test('lists the registries of which none was named, and takes one that is named later without another sign-in', async () => {
    const user = await userAs('alice');
    const line = `login --issuer ${idp.issuer} ${registry.open} --allow-private-ip --callback-port ${await freePort()}`;
    const { code, stderr } = await user.skep(line.split(' '));
    expect([code, stderr]).toEqual([
      0,
      expect.stringContaining(
        `There are acme, open; choose one with skep config set-registry ${registry.open}/registry/acme`,
      ),
    ]);
    await output(user, `config set-registry ${registry.open}/registry/open --allow-private-ip`);
    expect(await output(user, 'search weather')).toContain('com.example/weather');
    expect(await output(user, 'whoami')).toContain('acme, open (in use)');
  });

  test('signs in by a code on another machine', async () => {
    const user = await userAs('alice');
    const child = user.start(
      `login --issuer ${idp.issuer} --device ${registry.open} acme --allow-private-ip`.split(' '),
    );
    const done = ended(child);
    const [whole = ''] = /http:\/\/\S+user_code=\S+/.exec(await printed(child, 'user_code=')) ?? [];
    await visit(whole, 'alice');
    expect((await done).code).toBe(0);
    expect(await output(user, 'whoami')).toContain('alice');
  });

  test('signs in a service by its secret', async () => {
    const user = await userAs('alice');
    const secret = await folder.write('client-secret', PIPELINE.secret);
    await output(
      user,
      `login --issuer ${idp.issuer} ${registry.open} acme --allow-private-ip --client-id ${PIPELINE.id} --client-secret-file ${secret} --scopes mcp`,
    );
    expect(await output(user, 'whoami')).toContain('manageEntries');
  });

  test('renews what has expired, once for all commands that ask at a time', async () => {
    const user = await userAs('alice');
    idp.tokenLifeMs = SHORT_MS;
    try {
      await signIn(user);
    } finally {
      idp.tokenLifeMs = 300_000;
    }
    // A token ends at a whole second, for the registry up to a second sooner than for who got it: now it has for both.
    const end = Date.now() + SHORT_MS;
    await expect.poll(() => Date.now(), { timeout: 2 * SHORT_MS }).toBeGreaterThan(end);
    const renewals = () => idp.grants.filter((grant) => grant === 'refresh_token').length;
    const before = renewals();
    const searches = await Promise.all([1, 2, 3].map(() => output(user, 'search weather')));
    expect(searches.every((found) => found.includes('com.example/weather'))).toBe(true);
    expect(renewals()).toBe(before + 1);
  });

  test('says that a sign-in has expired which cannot be renewed', async () => {
    const user = await userAs('alice');
    idp.tokenLifeMs = idp.refreshLifeMs = SHORT_MS;
    try {
      await signIn(user);
    } finally {
      [idp.tokenLifeMs, idp.refreshLifeMs] = [300_000, 3_600_000];
    }
    const search = async () => (await user.skep(['search', 'weather'])).stderr;
    await expect
      .poll(search, { timeout: 30_000 })
      .toContain(
        `your sign-in to ${host()}/registry/acme has expired; sign in again with skep login ${registry.open}`,
      );
    await signIn(user);
    expect(await output(user, 'search weather')).toContain('com.example/weather');
  });

  test('forgets at logout what proves who one is, and shows nothing of the catalogue after it', async () => {
    const user = await userAs('alice');
    await signIn(user);
    await output(user, 'search weather');
    expect(await output(user, 'logout')).toBe(`Signed out of ${host()}\n`);
    expect(idp.requests.filter((line) => line === 'POST /token/revocation').length).toBeGreaterThan(0);
    for (const line of ['search weather', 'info com.example/weather', 'run com.example/weather'])
      expect(await refusal(user, line)).toContain('you are signed in as nobody; sign in with skep login');
    expect((await user.skep('complete -- run com'.split(' '))).stdout).not.toContain('weather');
    for (const file of user.leftFiles()) {
      const text = await readFile(path.join(user.dir, file), 'utf8').catch(() => '');
      expect([file, text.includes('com.example/weather')]).toEqual([file, false]);
    }
    await output(user, `login --callback-port ${await freePort()}`);
    expect(await output(user, 'search weather')).toContain('com.example/weather');
  });

  test('gives another the words of the gate, and no registry that is not theirs', async () => {
    const user = await userAs('bob');
    const line = `login --issuer ${idp.issuer} ${registry.open} acme --allow-private-ip --callback-port ${await freePort()}`;
    expect((await user.skep(line.split(' '))).stderr).toContain(`${host()} has no registry "acme" for you`);
    expect(
      await refusal(user, `config set-registry ${registry.open}/registry/acme --allow-private-ip`),
    ).toContain('insufficient claims for registry');
  });

  test('leaves what proves who one is in the sealed store, and nowhere else', async () => {
    const user = await userAs('paula');
    const args = `login --issuer ${idp.issuer} ${registry.open} acme --allow-private-ip --debug --callback-port ${await freePort()}`;
    const said = await user.skep(args.split(' '));
    expect(said.code).toBe(0);
    await output(user, 'run com.example/near --name near --remote-auth-bearer-token another');
    const processes = allProcesses();
    expect(idp.given.size).toBeGreaterThan(2);
    expect([...idp.given].filter((secret) => processes.includes(secret))).toEqual([]);
    const all: [string, string][] = [
      ['stdout', said.stdout],
      ['stderr', said.stderr],
    ];
    for (const file of [...user.leftFiles(), 'config/skep/config.yaml'])
      all.push([file, await readFile(path.join(user.dir, file), 'utf8').catch(() => '')]);
    // A JWT, and what is said of a refresh token where one is kept.
    const telling = all.filter(([, text]) => /eyJ[\w-]{10,}\.eyJ|"refreshToken":/.test(text));
    expect(telling.map(([name]) => name)).toEqual([]);
  });
});

describe('skep publish', () => {
  test('publishes for those who may, shows it to those who may see it, and takes it back', async () => {
    const [paula, alice] = [await userAs('paula'), await userAs('alice')];
    await Promise.all([signIn(paula), signIn(alice)]);
    await folder.write('server.json', JSON.stringify(DOCUMENT));
    const at = { cwd: folder.path };
    const claims = ['--claim', 'org=acme', '--claim', 'team=platform'];
    const tried = await paula.skep(['publish', '--dry-run', ...claims], at);
    expect(tried.stdout).toContain(
      'Who would see it: super-admins, and who holds org=acme and team=platform\n',
    );
    const refused = await alice.skep(['publish', ...claims], at);
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('refuses: forbidden')]);
    expect((await paula.skep(['publish', ...claims], at)).stdout).toBe(
      `Published com.example/linter 1.0.0 to acme at ${host()}\n`,
    );
    expect(await output(paula, 'search linter')).toContain('com.example/linter');
    expect(await output(alice, 'search linter')).toContain('No servers found');
    const again = await paula.skep(['publish', ...claims], at);
    expect(again.stderr).toContain('does not take it: version already exists');
    expect(await output(paula, 'deprecate com.example/linter@1.0.0')).toContain('is now deprecated');
    expect(await output(paula, 'unpublish com.example/linter@1.0.0')).toContain('Deleted');
    expect(await output(paula, 'search linter')).toContain('No servers found');
  });
});
