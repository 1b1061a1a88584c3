import { describe, expect, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT } from '../command-under-test.fixture.ts';

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
