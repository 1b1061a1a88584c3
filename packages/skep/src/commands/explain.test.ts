import { rootCertificates } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  commandUnderTest,
  NOTHING_LEFT,
  openCommandUnderTest,
  type CommandUnderTest,
} from '../command-under-test.fixture.ts';

const CATALOGUE = {
  version: '1.0.0',
  last_updated: '2026-01-01T00:00:00Z',
  servers: {
    tools: {
      image: 'example/tools:2',
      description: 'x',
      transport: 'streamable-http',
      target_port: 3000,
      proxy_port: 4711,
      args: ['--quiet'],
      env_vars: [
        { name: 'REGION', description: 'x', required: false, default: 'eu' },
        { name: 'LICENCE', description: 'x', required: true, secret: true },
      ],
    },
    spoken: {
      image: 'example/tools:2',
      description: 'x',
      transport: 'stdio',
      target_port: 3000,
      proxy_port: 4711,
    },
    silent: { image: 'example/tools:2', description: 'x' },
  },
};

/** The lines by setting, with runs of spaces as one bar. */
async function explained(line: string, machine: Parameters<typeof commandUnderTest>[0] = {}) {
  const skep = await commandUnderTest({ supervisor: 'none', ...machine });
  const { status, out, err } = await skep.run(line);
  expect(err).toBe('');
  expect(status).toBe(0);
  expect(await skep.left()).toEqual(NOTHING_LEFT);
  const lines = out
    .trimEnd()
    .split('\n')
    .map((one) => one.replaceAll(/ {3,}/g, ' | '));
  expect(lines[0]).toBe('SETTING | VALUE | FROM | INSTEAD OF');
  return new Map(lines.slice(1).map((one) => [one.split(' | ')[0], one.split(' | ').slice(1).join(' | ')]));
}

describe('skep run --explain', () => {
  test('starts nothing, and says nothing of defaults', async () => {
    const lines = await explained('run --explain fake:1');
    expect([...lines]).toEqual([['image', 'fake:1 | the command line']]);
  });

  test.each(['npx://@example/tools@1.2.3', 'uvx://tools@1.2.3', 'go://example.org/tools@v1.2.3'])(
    'names the package %s whole: its @ is no login',
    async (reference) => {
      const lines = await explained(`run --explain ${reference}`);
      expect(lines.get('image')).toBe(`${reference} | the command line`);
    },
  );

  test('says the same in two lines each where a table does not fit the terminal', async () => {
    const skep = await commandUnderTest({ supervisor: 'none', env: { SKEP_RUNTIME: 'docker' } });
    const shown = (widthOut: number): Promise<string> =>
      skep.output('run --explain --runtime sandbox fake:1', { terminal: { widthOut, liveOut: true } });
    expect(await shown(60)).toBe(await shown(Infinity));
    expect(await shown(40)).toBe(
      'runtime: sandbox\n  from --runtime, instead of docker\n  (SKEP_RUNTIME)\nimage: fake:1\n  from the command line\n',
    );
  });

  test('says which runtime was named, and that a flag comes before the variable', async () => {
    const lines = await explained('run --explain --runtime sandbox fake:1', {
      env: { SKEP_RUNTIME: 'docker' },
    });
    expect(lines.get('runtime')).toBe('sandbox | --runtime | docker (SKEP_RUNTIME)');
  });

  test('says of each setting which flag, variable or file it comes from', async () => {
    const lines = await explained(
      'run --explain --host 0.0.0.0 -l team=blue --env-file env -e TZ=UTC fake:1 -- -v',
      {
        env: { SKEP_PROXY_REQUEST_TIMEOUT: '5s' },
        files: { env: 'TZ=CET\nLANG=C\n' },
      },
    );
    expect(Object.fromEntries(lines)).toEqual({
      host: '0.0.0.0 | --host | 127.0.0.1 (default)',
      'container_labels.team': 'blue | --label',
      'env-file': 'env | --env-file',
      'env_vars.TZ': 'UTC | --env | CET (env)',
      'env_vars.LANG': 'C | env',
      request_timeout: '5s | SKEP_PROXY_REQUEST_TIMEOUT | 1m0s (default)',
      image: 'fake:1 | the command line',
      cmd_args: '["-v"] | the command line',
    });
  });

  test('says what the catalogue decides, and what was taken instead of it', async () => {
    const entry = 'catalogue entry "io.github.stacklok/tools"';
    const lines = await explained('run --explain --proxy-port 4000 -e LICENCE=hush tools', {
      catalogue: CATALOGUE,
    });
    expect(Object.fromEntries(lines)).toMatchObject({
      transport: `streamable-http | ${entry}`,
      target_port: `3000 | ${entry}`,
      port: `4000 | --proxy-port | 4711 (${entry})`,
      image: `example/tools:2 | ${entry}`,
      cmd_args: `["--quiet"] | ${entry}`,
      'env_vars.REGION': `eu | ${entry}`,
      'env_vars.LICENCE': '******** | --env',
    });
  });

  test('masks what is secret by its name alone', async () => {
    const lines = await explained(
      'run --explain -e GITHUB_TOKEN=hush -e URL=https://a:hush@b.example fake:1 -- --api-key hush --token=hush -x 1',
    );
    expect(lines.get('env_vars.GITHUB_TOKEN')).toBe('******** | --env');
    expect(JSON.stringify([...lines])).not.toContain('hush');
  });

  test('names the line of an imported file, and the variable that stands for it', async () => {
    const file = {
      name: 'ab',
      image: 'fake:1',
      transport: 'stdio',
      request_timeout: '9s',
      env_vars: { A: '1' },
    };
    const lines = await explained('run --explain --from-config x.json', {
      env: { SKEP_PROXY_REQUEST_TIMEOUT: '5s' },
      files: { 'x.json': JSON.stringify(file, null, 2) },
    });
    expect(Object.fromEntries(lines)).toEqual({
      name: 'ab | x.json:2',
      image: 'fake:1 | x.json:3',
      transport: 'stdio | x.json:4',
      'from-config': 'x.json | --from-config',
      request_timeout: '5s | SKEP_PROXY_REQUEST_TIMEOUT | 9s (x.json:5), 1m0s (default)',
      'env_vars.A': '1 | x.json:6',
    });
  });

  test('names the variables of this machine that an imported file stands on', async () => {
    const file = { name: 'ab', image: 'fake:1', transport: 'stdio', secret_env: ['LICENCE'] };
    const lines = await explained('run --explain --from-config x.json', {
      env: { SKEP_SECRET_LICENCE: 'hush', NODE_EXTRA_CA_CERTS: '/ca.pem' },
      files: { 'x.json': JSON.stringify(file) },
    });
    expect(Object.fromEntries(lines)).toMatchObject({
      'env_vars.LICENCE': '******** | SKEP_SECRET_LICENCE',
      'ca-cert': '/ca.pem | NODE_EXTRA_CA_CERTS',
    });
  });

  test('asks a person nothing, and gives the catalogue nothing', async () => {
    const skep = await commandUnderTest({ supervisor: 'up', catalogue: CATALOGUE });
    const { status, out } = await skep.run('run --explain tools', { answers: {}, agrees: false });
    expect(status).toBe(0);
    expect(out).toContain('SETTING');
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test.each(['run --explain', 'run --explain --port-typo fake:1', 'run --explain nonsense!'])(
    'fails as the run would: %s',
    async (line) => {
      const skep = await commandUnderTest({ supervisor: 'none' });
      expect((await skep.run(line)).status).not.toBe(0);
    },
  );
});

describe('a flag counts before the catalogue, that before the configuration, and that before what is usual', () => {
  const ENTRY = 'catalogue entry "io.github.stacklok/tools"';
  const CONFIG = [
    'local_registry_path: HOME/catalogue.json',
    'ca_certificate_path: /config.pem',
    'image_verification: enabled',
    'isolation: on',
    'runtime_configs:',
    '  npx: {builder_image: own:1, additional_packages: [jq], runtime_env: {A: x}}',
    '  uvx: {build_with: [y]}',
  ];
  let skep: CommandUnderTest;
  beforeAll(async () => {
    skep = await openCommandUnderTest({
      supervisor: 'none',
      catalogue: CATALOGUE,
      env: { NODE_EXTRA_CA_CERTS: '/env.pem', SKEP_PROXY_REQUEST_TIMEOUT: '5s' },
      files: {
        'all.env': 'REGION=file\n',
        'vars/a': 'REGION=directory\n',
        'ca.pem': rootCertificates[0] ?? '',
      },
    });
    await skep.configure(CONFIG.join('\n').replace('HOME', skep.home));
  });
  afterAll(() => skep.close());

  const PERMISSIVE = 'tools -e LICENCE=x --image-verification warn';
  test.each([
    [PERMISSIVE, 'transport', `streamable-http | ${ENTRY}`],
    [`${PERMISSIVE} --transport stdio`, 'transport', `stdio | --transport | streamable-http (${ENTRY})`],
    [`${PERMISSIVE} --target-port 4000`, 'target_port', `4000 | --target-port | 3000 (${ENTRY})`],
    [`${PERMISSIVE} --proxy-port 0`, 'port', `0 | --proxy-port | 4711 (${ENTRY})`],
    // What speaks stdio is reached by nobody but its proxy.
    [`${PERMISSIVE} --transport stdio`, 'port', undefined],
    [`${PERMISSIVE} -- --loud`, 'cmd_args', `["--loud"] | the command line | ["--quiet"] (${ENTRY})`],
    [`${PERMISSIVE} --`, 'cmd_args', `["--quiet"] | ${ENTRY}`],
    ['spoken --image-verification warn', 'port', undefined],
    ['spoken --image-verification warn', 'target_port', undefined],
    ['silent --image-verification warn', 'transport', 'stdio | catalogue entry "io.github.stacklok/silent"'],
    [PERMISSIVE, 'env_vars.REGION', `eu | ${ENTRY}`],
    [`${PERMISSIVE} --env-file all.env`, 'env_vars.REGION', `file | all.env | eu (${ENTRY})`],
    [
      `${PERMISSIVE} --env-file all.env --env-file-dir vars`,
      'env_vars.REGION',
      `directory | vars/a | file (all.env), eu (${ENTRY})`,
    ],
    [
      `${PERMISSIVE} --env-file all.env --env-file-dir vars -e REGION=flag`,
      'env_vars.REGION',
      `flag | --env | directory (vars/a), file (all.env), eu (${ENTRY})`,
    ],
    [PERMISSIVE, 'image-verification', 'warn | --image-verification | enabled (CONFIG), warn (default)'],
    [PERMISSIVE, 'isolate_network', 'true | CONFIG | false (default)'],
    [
      `${PERMISSIVE} --isolate-network=false`,
      'isolate_network',
      'false | --isolate-network | true (CONFIG), false (default)',
    ],
    [PERMISSIVE, 'request_timeout', '5s | SKEP_PROXY_REQUEST_TIMEOUT | 1m0s (default)'],
    [
      `${PERMISSIVE} --ca-cert ca.pem`,
      'ca-cert',
      'ca.pem | --ca-cert | /config.pem (CONFIG), /env.pem (NODE_EXTRA_CA_CERTS)',
    ],
    [PERMISSIVE, 'ca-cert', '/config.pem | CONFIG | /env.pem (NODE_EXTRA_CA_CERTS)'],
    ['npx://fake --image-verification warn', 'runtime_config.builder_image', 'own:1 | CONFIG'],
    [
      'npx://fake --image-verification warn --runtime-image node:24',
      'runtime_config.builder_image',
      'node:24 | --runtime-image | own:1 (CONFIG)',
    ],
    // Each part by itself.
    [
      'npx://fake --image-verification warn --runtime-image node:24',
      'runtime_config.additional_packages',
      'jq | CONFIG',
    ],
    [
      'npx://fake --image-verification warn --runtime-add-package git',
      'runtime_config.additional_packages',
      'git | --runtime-add-package | jq (CONFIG)',
    ],
    ['npx://fake --image-verification warn', 'runtime_config.runtime_env.A', 'x | CONFIG'],
    [
      'uvx://fake --image-verification warn --build-with x',
      'runtime_config.build_with',
      'x | --build-with | y (CONFIG)',
    ],
    ['uvx://fake --image-verification warn', 'runtime_config.builder_image', undefined],
  ])('run %s: %s', async (line, setting, said) => {
    const shown = (await skep.output(`run --explain ${line}`)).replaceAll(skep.places.configFile, 'CONFIG');
    const lines = shown.split('\n').map((one) => one.replaceAll(/ {3,}/g, ' | '));
    expect(lines.find((one) => one.startsWith(`${setting} | `))).toBe(said && `${setting} | ${said}`);
  });
});
