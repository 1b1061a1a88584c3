import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT, type CommandLine } from '../command-under-test.fixture.ts';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';
import { catalogueOf } from './catalogue.fixture.ts';

const URL = 'http://127.0.0.1:9/api/mcp?key=a,b';
const RUN = `run ${URL} --name a1`;
const VALUE = 'hunter2-of-the-header';
const REMOTE = { type: 'streamable-http', url: 'https://x.invalid/mcp' };
/** An entry whose server wants a header, and is there. */
const keyedAt = (url: string) => ({
  remotes: [
    {
      ...REMOTE,
      url,
      headers: [{ name: 'X-Key', isRequired: true, isSecret: true, description: 'Your key' }],
    },
  ],
});
const catalogue = catalogueOf({
  'com.example/far': { remotes: [REMOTE] },
  'com.example/stream': { remotes: [{ type: 'sse', url: 'https://x.invalid/' }] },
  'com.example/near': { remotes: [{ type: 'sse', url: 'http://127.0.0.1:9/sse' }] },
  'com.example/keyed': keyedAt(REMOTE.url),
  'com.example/login': { remotes: [{ ...REMOTE, url: 'https://ann:pw@x.invalid/' }] },
  'com.example/tenant': {
    remotes: [{ type: 'sse', url: 'https://{tenant}.invalid/', variables: { tenant: { isRequired: true } } }],
  },
});
const secretly = {
  keyrings: [new MemoryKeyring({ maxChars: 1_000_000 })],
  env: { SKEP_SECRETS_PROVIDER: 'keyring' },
};

describe('a server elsewhere', () => {
  test.each<[string, CommandLine, string]>([
    ['stdio', `${RUN} --transport stdio`, '--transport stdio reaches no server elsewhere'],
    ['arguments', `${RUN} -- x`, 'a server elsewhere takes no arguments'],
    ['--learn', `${RUN} --learn`, '--learn watches servers that run here'],
    ['a login in its address', 'run https://ann:pw@x.invalid/', 'holds a login; give what the server wants with --remote-forward-headers-secret'],
    ['a login in the address of its entry', 'run login', 'holds a login; give what the server wants with --remote-forward-headers-secret'],
    ['a header without a value', `${RUN} --remote-forward-headers A`, 'invalid value for --remote-forward-headers'],
    ['no name of a header', [...RUN.split(' '), '--remote-forward-headers', 'A b=c'], 'invalid header name: "A b"'],
    ['a header of the connection', `${RUN} --remote-forward-headers Host=x`, 'the header "Host" cannot be forwarded'],
    ['a header of MCP', `${RUN} --remote-forward-headers mcp-session-id=x`, 'the header "mcp-session-id" cannot be forwarded'],
    ['a control character', [...RUN.split(' '), '--remote-forward-headers', 'A=b\r\nC: d'], 'the value of the header "A" cannot be sent'],
    ['a value that is too long', `${RUN} --remote-forward-headers A=${'x'.repeat(8193)}`, 'the value of the header "A" cannot be sent'],
    ['no secret', `${RUN} --remote-forward-headers-secret A=nowhere`, 'secret'],
    ['no authorities', `${RUN} --skep-ca-bundle nowhere.pem`, 'nowhere.pem'],
    ['a required header', 'run keyed', 'missing required header: X-Key (Your key); store the value with skep secret set NAME and give --remote-forward-headers-secret X-Key=NAME'],
    ['an address that is not whole', 'run tenant', 'the address of "com.example/tenant" lacks tenant'],
    ['an address of this machine in the catalogue', 'run near', '"com.example/near" of the catalogue is at 127.0.0.1:9, which is no public address; if you trust it, run its address'],
    ['headers, but here', 'run fake:1 --name a1 --remote-forward-headers A=b', '--remote-forward-headers is for servers that run elsewhere'],
  ])('is refused with %s, and nothing is made', async (_name, line, message) => {
    const skep = await commandUnderTest({ catalogue });
    expect(await skep.refusal(line)).toContain(message);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  }); // prettier-ignore

  test('lives as every workload does, without anything here to run on', async () => {
    const skep = await commandUnderTest();
    skep.runtime.unreachable = true;
    await skep.output(`${RUN} --remote-forward-headers X-A=1 --remote-forward-headers x-a=2`);
    const [shown] = JSON.parse(await skep.output('list --format json'));
    expect(shown).toMatchObject({
      package: 'remote',
      remote: true,
      status: 'running',
      transport_type: 'streamable-http',
    });
    expect(shown.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/api\/mcp$/);
    expect(await skep.output('status a1')).toContain('Remote:');
    await skep.output('stop a1');
    expect(JSON.parse(await skep.output('list --all --format json'))).toMatchObject([{ status: 'stopped' }]);
    await skep.output('start a1');
    await skep.killSupervisor();
    expect(JSON.parse(await skep.output('list --format json'))).toMatchObject([{ status: 'running' }]);
    expect(await skep.output('upgrade a1 --yes')).toContain('a1 is up to date');
    await skep.output('export a1 out.json');
    await skep.output('rm a1');
    skep.runtime.unreachable = false;
    expect(await skep.left()).toEqual(NOTHING_LEFT);
    await skep.output('run --from-config out.json --trust-config');
    const saved = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8'));
    expect(saved).toMatchObject({
      image: URL,
      remote_url: URL,
      remote_allow_private_ip: true,
      transport: 'streamable-http',
      header_forward: { add_plaintext_headers: { 'x-a': '2' } },
      runtime: { kind: 'remote' },
    });
  });

  test('says what has no effect, and which value would be better kept', async () => {
    const skep = await commandUnderTest();
    const { err } = await skep.run(
      `${RUN} -e A=b --isolate-network --remote-forward-headers Authorization=abc`,
    );
    expect(err).toContain('Warning: --isolate-network, --env have no effect on a server elsewhere\n');
    expect(err).toContain('Warning: the value of Authorization is saved as it is');
    expect(err).not.toContain('abc');
    const exported = await skep.run('export a1 out.json');
    expect(exported.err).toContain('the value of the header Authorization is not exported');
    expect(await readFile(join(skep.cwd, 'out.json'), 'utf8')).not.toMatch(/abc|Authorization/);
  });

  test('trusts the authority of the configuration file, where no flag names another', async () => {
    const skep = await commandUnderTest({ files: { 'ca.pem': rootCertificates[0] ?? '' } });
    await skep.output('config set ca_certificate_path ca.pem');
    await skep.output(RUN);
    const saved = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8'));
    expect(saved.skep_ca_bundle).toBe(join(skep.cwd, 'ca.pem'));
    await writeFile(join(skep.cwd, 'ca.pem'), 'nothing');
    expect(await skep.refusal(RUN.replace('a1', 'a2'))).toContain('holds no certificate');
  });

  test('keeps the value of a header from a secret in memory alone', async () => {
    const skep = await commandUnderTest(secretly);
    await skep.output('secret set mine', { input: VALUE });
    await skep.output(
      `${RUN} --remote-forward-headers-secret X-Key=mine --remote-forward-headers x-key=plain`,
    );
    await skep.output('export a1 out.json');
    for (const path of [join(skep.places.runConfigsDir, 'a1.json'), join(skep.cwd, 'out.json')]) {
      const text = await readFile(path, 'utf8');
      expect(text).not.toContain(VALUE);
      expect(JSON.parse(text).header_forward).toEqual({ add_headers_from_secret: { 'X-Key': 'mine' } });
    }
    expect(await skep.output('status a1')).toContain('X-Key');
    await skep.output('stop a1');
    await skep.output('secret delete mine');
    expect(await skep.refusal('start a1')).toContain('secret not found: "mine"');
    await skep.output('rm a1');
    expect(await skep.refusal('run --from-config out.json')).toContain(
      'send 127.0.0.1:9 the secret "mine" as X-Key',
    );
  });

  test.each([
    ['far', 'streamable-http', '/mcp'],
    ['stream', 'sse', '/sse#stream'],
  ])('of the catalogue speaks as its entry says: %s', async (name, transport_type, path) => {
    const skep = await commandUnderTest({ catalogue });
    await skep.output(`run ${name}`);
    const [shown] = JSON.parse(await skep.output('list --format json'));
    expect(shown).toMatchObject({ transport_type, package: 'remote' });
    expect(shown.url).toMatch(new RegExp(`:\\d+${path}$`));
  });

  test.each([
    ['', 'port | 4712 | ENTRY'],
    ['--proxy-port 4000', 'port | 4000 | --proxy-port | 4712 (ENTRY)'],
    ['', 'transport | streamable-http | ENTRY'],
    ['--transport sse', 'transport | sse | --transport | streamable-http (ENTRY)'],
    ['', 'remote_url | https://x.invalid/mcp | ENTRY'],
    ['', 'registry_server_name | io.github.stacklok/far | ENTRY'],
  ])('takes from its entry what no flag says: run far %s has %s', async (flags, line) => {
    const far = { url: REMOTE.url, description: 'x', transport: 'streamable-http', proxy_port: 4712 };
    const skep = await commandUnderTest({
      supervisor: 'none',
      catalogue: { version: '1.0.0', last_updated: '2026-01-01T00:00:00Z', remote_servers: { far } },
    });
    const shown = await skep.output(`run --explain far ${flags}`);
    const lines = shown.replaceAll('catalogue entry "io.github.stacklok/far"', 'ENTRY').split('\n');
    expect(lines.map((one) => one.replaceAll(/ {3,}/g, ' | '))).toContain(line);
  });

  test.each([
    [{ issuer: 'https://i.invalid' }, ['remote_auth_config.issuer | https://i.invalid | ENTRY']],
    [
      { client_id: 'c', scopes: ['a', 'b'], resource: 'https://r.invalid', callback_port: 8667 },
      [
        'remote_auth_config.client_id | c | ENTRY',
        expect.stringMatching(/^remote_auth_config\.scopes \| .*a.*b.* \| ENTRY$/),
        'remote_auth_config.resource | https://r.invalid | ENTRY',
        'remote_auth_config.callback_port | 8667 | ENTRY | 8666 (default)',
      ],
    ],
    [
      { authorize_url: 'https://i.invalid/a', token_url: 'https://i.invalid/t', client_id: 'c' },
      [
        'remote_auth_config.authorize_url | https://i.invalid/a | ENTRY',
        'remote_auth_config.token_url | https://i.invalid/t | ENTRY',
      ],
    ],
    [{ oauth_params: { audience: 'x' } }, [expect.stringMatching(/oauth_params.*audience.* \| ENTRY$/)]],
  ])('signs in as its entry says: %j', async (oauth_config, lines) => {
    const skep = await commandUnderTest({
      supervisor: 'none',
      catalogue: catalogueOf({ 'com.example/far': { remotes: [REMOTE], extension: { oauth_config } } }),
    });
    const shown = await skep.output('run --explain far', { agrees: true });
    const all = shown.replaceAll('catalogue entry "com.example/far"', 'ENTRY').split('\n');
    expect(all.map((one) => one.replaceAll(/ {3,}/g, ' | '))).toEqual(expect.arrayContaining(lines));
  });

  test('is sent the headers that its entry has values for, unless a flag says otherwise', async () => {
    const headers = [
      { name: 'X-Region', default: 'eu' },
      { name: 'X-Team', isRequired: true, default: 'blue' },
      { name: 'X-Open' },
    ];
    const skep = await commandUnderTest({
      catalogue: catalogueOf({ 'com.example/valued': { remotes: [{ ...REMOTE, headers }] } }),
    });
    await skep.output('run valued --remote-auth=false --remote-forward-headers x-team=red');
    const saved = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'valued.json'), 'utf8'));
    expect(saved.header_forward).toEqual({ add_plaintext_headers: { 'X-Region': 'eu', 'x-team': 'red' } });
  });

  test('is upgraded to the address that its entry names by then, and back', async () => {
    const skep = await commandUnderTest({ catalogue });
    await skep.output('run far');
    await skep.write(
      '../catalogue.json',
      catalogueOf({
        'com.example/far': { remotes: [{ ...REMOTE, url: 'https://y.invalid/mcp' }] },
      }),
    );
    expect(await skep.output('upgrade far --yes')).toContain('https://x.invalid/mcp → https://y.invalid/mcp');
    const url = async (): Promise<string> =>
      JSON.parse(await readFile(join(skep.places.runConfigsDir, 'far.json'), 'utf8')).remote_url;
    expect(await url()).toBe('https://y.invalid/mcp');
    await skep.output('upgrade far --undo');
    expect(await url()).toBe('https://x.invalid/mcp');
    expect((await skep.run('export far out.yaml --format k8s')).err).toContain('a server elsewhere');
  });

  test('has the secrets of its headers after an upgrade, and after that is taken back', async () => {
    const skep = await commandUnderTest({ ...secretly, catalogue });
    await skep.output('secret set mine', { input: VALUE });
    await skep.output('run keyed --remote-forward-headers-secret X-Key=mine');
    await skep.write(
      '../catalogue.json',
      catalogueOf({ 'com.example/keyed': keyedAt('https://x.invalid/2') }),
    );
    await skep.output('upgrade keyed --yes');
    const status = async (): Promise<unknown> => JSON.parse(await skep.output('status keyed --format json'));
    expect(await status()).toMatchObject({ status: 'running', remote_url: 'https://x.invalid/2' });
    await skep.output('upgrade keyed --undo');
    expect(await status()).toMatchObject({ status: 'running', remote_url: 'https://x.invalid/mcp' });
  });

  test('shows no other server what it keeps for this one, unless somebody who is asked agrees', async () => {
    const skep = await commandUnderTest({ ...secretly, catalogue });
    await skep.output('secret set mine', { input: VALUE });
    await skep.output(
      'run keyed --remote-forward-headers-secret X-Key=mine --remote-forward-headers api-token=x',
    );
    await skep.write(
      '../catalogue.json',
      catalogueOf({ 'com.example/keyed': keyedAt('https://y.invalid/mcp') }),
    );
    const asks = ['send y.invalid the secret "mine" as X-Key', 'send y.invalid the header api-token'];
    const { status, err: refused } = await skep.run('upgrade keyed --yes');
    expect(status).toBe(1);
    for (const one of asks) expect(refused).toContain(one);
    const said = await skep.output('upgrade keyed', { agrees: true });
    for (const one of asks) expect(said).toContain(one);
    expect(said).toContain('https://y.invalid/mcp');
  });

  test('is upgraded to what its entry says of the new address: how it speaks, and what it needs', async () => {
    const skep = await commandUnderTest({ catalogue });
    await skep.output('run stream');
    const moved = { type: 'streamable-http', url: 'https://y.invalid/mcp' };
    await skep.write('../catalogue.json', catalogueOf({ 'com.example/stream': keyedAt(moved.url) }));
    expect(await skep.refusal('upgrade stream --yes')).toContain('missing required header: X-Key (Your key)');
    await skep.write('../catalogue.json', catalogueOf({ 'com.example/stream': { remotes: [moved] } }));
    await skep.output('upgrade stream --yes');
    const saved: unknown = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'stream.json'), 'utf8'));
    expect(saved).toMatchObject({
      remote_url: moved.url,
      transport: 'streamable-http',
      proxy_mode: 'streamable-http',
    });
  });
});
