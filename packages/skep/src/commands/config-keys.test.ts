import { stat } from 'node:fs/promises';
import { rootCertificates } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { commandUnderTest } from '../command-under-test.fixture.ts';

/** A certificate that every Node brings. */
const [PEM = ''] = rootCertificates;

describe('skep config', () => {
  test('set keeps a path from wherever it is given, get prints it, unset removes it', async () => {
    const skep = await commandUnderTest({ files: { 'ca.pem': PEM } });
    expect(await skep.output('config get-ca-cert')).toBe('no CA certificate is configured\n');
    expect(await skep.run('config set ca-certificate-path ca.pem')).toEqual({
      status: 0,
      out: '',
      err: `ca_certificate_path is now ${skep.cwd}/ca.pem\n`,
    });
    expect(await skep.output('config get ca_certificate_path')).toBe(`${skep.cwd}/ca.pem\n`);
    expect(await skep.output('config get-ca-cert')).toBe(`${skep.cwd}/ca.pem\n`);
    await skep.output('config unset-ca-cert');
    expect(await skep.run('config get ca_certificate_path')).toEqual({
      status: 0,
      out: '',
      err: 'ca_certificate_path is not set\n',
    });
  });

  test.each([
    ['', ''],
    ['secrets: {}\n', ''],
    [
      '# mine\nregistry_url: https://a.example/b # here\n',
      '# mine\nregistry_url: https://a.example/b # here\n',
    ],
    ['# mine\nsecrets:\n  # theirs\n  provider_type: none\n', '# mine\n# theirs\n'],
  ])('a key within another is set and unset in %j', async (before, after) => {
    const skep = await commandUnderTest();
    await skep.configure(before);
    await skep.output('config set secrets.provider_type environment');
    expect(await skep.output('config get secrets.provider_type')).toBe('environment\n');
    await skep.output('config unset secrets.provider_type');
    expect(await skep.read(skep.places.configFile)).toBe(after);
  });

  test.each([
    ['otel.endpoint', 'localhost:4318'],
    ['otel.sampling-rate', '0.5'],
    ['otel.env-vars', 'REGION,ZONE'],
    ['otel.insecure', 'true'],
    ['otel.enable-prometheus-metrics-path', 'true'],
    ['otel.tracing-enabled', 'false'],
    ['otel.metrics-enabled', 'true'],
    ['otel.use-legacy-attributes', 'false'],
  ])('%s is set, read back by runs, and unset', async (key, value) => {
    const skep = await commandUnderTest();
    await skep.output(`config set ${key} ${value}`);
    expect(await skep.output(`config get ${key}`)).toBe(`${value}\n`);
    await skep.output('run fake:1 --name a1');
    await skep.output(`config unset ${key}`);
    expect((await skep.run(`config get ${key}`)).err).toBe(`${key} is not set\n`);
  });

  test.each([
    'registry_url',
    'registry_api_url',
    'local_registry_path',
    'allow_private_registry_ip',
    'registry_auth.type',
    'ca_certificate_path',
    'secrets.provider_type',
    'build_env',
    'build_env_from_secrets',
    'build_env_from_shell',
    'build_auth_files',
    'runtime_configs',
  ])('%s is a key', async (key) => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(JSON.parse(await skep.output('config list --format json'))).toHaveProperty([key]);
  });

  test.each(['clients', 'disable_usage_metrics', 'migrated'])(
    '%s, which other tools keep there, is said to be none',
    async (key) => {
      const skep = await commandUnderTest({ supervisor: 'none' });
      await skep.configure(`${key}: true\n`);
      expect(await skep.refusal('config list')).toMatch(new RegExp(`config\\.yaml:1:1: .*"${key}"`));
    },
  );

  test('every key is known as it is listed, and with underscores or dashes instead', async () => {
    const skep = await commandUnderTest();
    const listed = JSON.parse(await skep.output('config list --format json')) as Record<string, unknown>;
    for (const key of Object.keys(listed)) {
      for (const word of [key, key.replaceAll('-', '_'), key.replaceAll('_', '-')]) {
        expect((await skep.run(`config get ${word}`)).status, word).toBe(0);
      }
    }
  });

  test('several commands that set keys at once lose none of them, and the file is for its user alone', async () => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    const keys = [
      'otel.insecure',
      'otel.tracing-enabled',
      'otel.metrics-enabled',
      'otel.use-legacy-attributes',
    ];
    await Promise.all(keys.map((key) => skep.output(`config set ${key} true`)));
    for (const key of keys) expect(await skep.output(`config get ${key}`)).toBe('true\n');
    expect((await stat(skep.places.configFile)).mode & 0o777).toBe(0o600);
  });

  test('a certificate that is not there any more is said', async () => {
    const skep = await commandUnderTest();
    await skep.configure('ca_certificate_path: /nowhere/ca.pem\n');
    const { out, err } = await skep.run('config get-ca-cert');
    expect(out).toBe('/nowhere/ca.pem\n');
    expect(err).toContain('Warning: ');
  });

  test('list shows every key with what holds, and nothing that signs in', async () => {
    const skep = await commandUnderTest();
    await skep.configure('registry_url: https://me:hunter2@registry.example/list.json\n');
    const listed = JSON.parse(await skep.output('config list --format json')) as Record<string, unknown>;
    expect(listed).toMatchObject({ ca_certificate_path: null, local_registry_path: null });
    expect(JSON.stringify(listed)).not.toContain('hunter2');
    const table = await skep.output('config list', { terminal: { widthOut: 80, liveOut: true } });
    for (const line of table.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
    expect(table).toContain('registry.example');
    expect(table).not.toContain('hunter2');
  });

  test.each([
    [
      'config set ca_certificate_pth x',
      'unknown key "ca_certificate_pth"; did you mean "ca_certificate_path"?',
    ],
    ['config get nonsense', 'unknown key "nonsense"; see the keys with skep config list'],
    [['config', 'get', 'a\u001b[2Jb'], 'unknown key "a�[2Jb"; see the keys with skep config list'],
    ['config set registry_auth.x y', 'unknown key "registry_auth.x"; did you mean'],
    [
      'config set registry_auth.oauth.issuer https://idp.example',
      'registry_auth.oauth.issuer is set together with others; use skep login ADDRESS',
    ],
    ['config unset build-env', 'build_env is set together with others; use skep config unset-build-env'],
    [
      'config set registry_url https://x.example',
      'registry_url is set together with others; use skep config set-registry ADDRESS',
    ],
    ['config unset registry-url', 'registry_url is set together with others; use skep config unset-registry'],
    [
      'config set ca_certificate_path absent.pem',
      'CA bundle "WORK/absent.pem" does not exist; check the path',
    ],
    ['config set ca_certificate_path', 'missing argument VALUE'],
    ['config set-ca-cert', 'missing argument FILE'],
  ])('%j is refused, and the file stays as it is', async (line, said) => {
    const skep = await commandUnderTest();
    await skep.configure('# mine\nallow_private_registry_ip: true\n');
    expect(await skep.refusal(line)).toContain(`Error: ${said}`);
    expect(await skep.read(skep.places.configFile)).toBe('# mine\nallow_private_registry_ip: true\n');
  });

  test('a broken file is an error with its place, and never overwritten', async () => {
    const skep = await commandUnderTest({ files: { 'ca.pem': PEM } });
    await skep.configure('registry_url: [\n');
    expect(await skep.refusal('config set ca_certificate_path ca.pem')).toMatch(/config\.yaml:\d+:\d+: /);
    expect(await skep.read(skep.places.configFile)).toBe('registry_url: [\n');
  });

  test('a value that no release knows is refused by name', async () => {
    const skep = await commandUnderTest();
    await skep.configure('registry_auth:\n  type: x\n');
    expect(await skep.refusal('run fake:1')).toContain('registry_auth.type');
  });
});
