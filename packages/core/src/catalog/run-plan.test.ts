import { describe, expect, test } from 'vitest';
import { choosePlan, runPlans, type LocalPlan, type RemotePlan } from './run-plan.ts';
import { PUBLISHER_META } from './extension-summary.ts';
import { serverDocument } from './server-json.ts';

const document = (more: object) =>
  serverDocument.parse({ name: 'io.acme/x', version: '1.0.0', description: 'x', ...more });
const npm = (more: object = {}) => ({
  registryType: 'npm',
  identifier: '@acme/x',
  version: '1.2.3',
  transport: { type: 'stdio' },
  ...more,
});
const oci = (more: object = {}) => ({
  registryType: 'oci',
  identifier: 'ghcr.io/acme/x:1',
  transport: { type: 'stdio' },
  ...more,
});

function local(entry: object, extension?: object): LocalPlan {
  const identifier: unknown = Reflect.get(entry, 'identifier');
  const _meta = { [PUBLISHER_META]: { 'io.github.stacklok': { [String(identifier)]: extension } } };
  const [plan] = runPlans(document({ packages: [entry], ...(extension === undefined ? {} : { _meta }) }));
  if (plan === undefined || !('args' in plan)) throw new Error('expected a local plan');
  return plan;
}

function remote(entry: object): RemotePlan {
  const [plan] = runPlans(document({ remotes: [entry] }));
  if (plan === undefined || !('headers' in plan)) throw new Error('expected a remote plan');
  return plan;
}

describe('what runs', () => {
  test.each([
    [npm(), { kind: 'package', ecosystem: 'npm', name: '@acme/x', version: '1.2.3' }],
    [npm({ version: 'latest' }), { kind: 'package', ecosystem: 'npm', name: '@acme/x' }],
    [npm({ registryBaseUrl: 'https://npm.acme.test' }), { registryBaseUrl: 'https://npm.acme.test' }],
    [
      npm({ registryType: 'pypi', identifier: 'mcp_x', version: '1!2.0' }),
      { ecosystem: 'pypi', name: 'mcp_x', version: '1!2.0' },
    ],
    [oci(), { kind: 'image', reference: 'ghcr.io/acme/x:1' }],
    [oci({ identifier: 'acme/x', version: '2' }), { reference: 'acme/x:2' }],
    [oci({ identifier: 'acme/x:1', version: '2' }), { reference: 'acme/x:1' }],
    [oci({ identifier: 'localhost:5000/x', version: '2' }), { reference: 'localhost:5000/x:2' }],
    [
      oci({ identifier: 'acme/x', version: '2', registryBaseUrl: 'https://ghcr.io' }),
      { reference: 'ghcr.io/acme/x:2' },
    ],
    [oci({ identifier: 'acme/x', registryBaseUrl: 'https://docker.io' }), { reference: 'acme/x' }],
    [oci({ identifier: 'x@sha256:0a', version: '2' }), { reference: 'x@sha256:0a' }],
  ])('%j', (entry, target) => {
    expect(local(entry).target).toMatchObject(target);
  });

  test('takes time by the length of an image name, and not by its square', () => {
    const identifier = `x${':'.repeat(200_000)}/y:1`;
    const runtimeArguments = [{ type: 'positional', value: 'x' }];
    expect(runPlans(document({ packages: [oci({ identifier, runtimeArguments })] }))).toHaveLength(1);
  });

  test.each([
    ['no package', {}, 'names no package and no remote'],
    ['an unsupported package', { packages: [npm({ registryType: 'mcpb' })] }, '"mcpb" are not supported'],
    ['an npm name that is a flag', { packages: [npm({ identifier: '--prefix' })] }, 'is no npm package name'],
    ['an npm name that is a path', { packages: [npm({ identifier: '../x' })] }, 'is no npm package name'],
    [
      'a PyPI name with a URL',
      { packages: [npm({ registryType: 'pypi', identifier: 'x@https://e.test' })] },
      'is no pypi',
    ],
    ['a version that is a path', { packages: [npm({ version: 'file:/etc' })] }, 'is no exact version'],
    ['a version range', { packages: [npm({ version: '^1.0.0' })] }, 'is no exact version'],
    ['an image that is a flag', { packages: [oci({ identifier: '--privileged' })] }, 'is no image reference'],
    [
      'an npm name that is a git address',
      { packages: [npm({ identifier: 'git+ssh://x/y' })] },
      'no npm package',
    ],
    [
      'a version that is a git address',
      { packages: [npm({ version: 'github:x/y' })] },
      'is no exact version',
    ],
    [
      'a variable that would steer the terminal',
      { packages: [npm({ environmentVariables: [{ name: 'TOK\u001B[31mEN' }] })] },
      'is no name of an environment variable',
    ],
    [
      'a variable without a name',
      { packages: [npm({ environmentVariables: [{ name: '' }] })] },
      '"" is no name of an environment variable',
    ],
    [
      'a variable of the container engine that is no name',
      { packages: [oci({ runtimeArguments: [{ type: 'named', name: '-e', value: 'x-api-key=1' }] })] },
      '"x-api-key" is no name of an environment variable',
    ],
    [
      'an image that is a file',
      { packages: [oci({ identifier: 'file:///etc/passwd' })] },
      'is no image reference',
    ],
    [
      'an image at an address',
      { packages: [oci({ identifier: 'https://x.example/a' })] },
      'is no image reference',
    ],
    ['an image with a space', { packages: [oci({ identifier: 'a b' })] }, 'is no image reference'],
    [
      'an unknown transport',
      { packages: [npm({ transport: { type: 'carrier-pigeon' } })] },
      '"carrier-pigeon"',
    ],
    [
      'a remote over another scheme',
      { remotes: [{ type: 'sse', url: 'file:///etc/passwd' }] },
      'is no http or https URL',
    ],
    [
      'a remote without transport',
      { remotes: [{ type: 'stdio', url: 'https://x.test' }] },
      'remote transport "stdio"',
    ],
  ])('is refused for %s', (_, more, reason) => {
    expect(() => runPlans(document(more))).toThrow(
      expect.objectContaining({ code: 'catalog/unusable-server', message: expect.stringContaining(reason) }),
    );
  });
});

describe('which of several ways', () => {
  const all = document({
    packages: [
      npm(),
      npm({ identifier: 'second' }),
      oci(),
      { registryType: 'mcpb', identifier: 'https://x.test/y' },
    ],
    remotes: [{ type: 'streamable-http', url: 'https://x.test/mcp' }],
  });

  test('puts images before packages before remotes and otherwise keeps the order', () => {
    const kinds = runPlans(all).map(({ target }) => ('name' in target ? target.name : target.kind));
    expect(kinds).toEqual(['image', '@acme/x', 'second', 'remote']);
  });

  test('chooses by what the machine can run', () => {
    expect(choosePlan(all, { images: true }).target.kind).toBe('image');
    expect(choosePlan(all, { images: false }).target.kind).toBe('package');
    expect(() => choosePlan(document({ packages: [oci()] }), { images: false })).toThrow(
      /only as a container image/,
    );
  });
});

describe('transport', () => {
  test.each([
    [undefined, { transport: 'stdio' }],
    [{ type: 'stdio', url: 'http://localhost:1' }, { transport: 'stdio' }],
    [
      { type: 'sse', url: 'http://localhost:8080/sse' },
      { transport: 'sse', targetPort: 8080, targetPath: '/sse' },
    ],
    [{ type: 'streamable-http', url: 'http://localhost' }, { transport: 'streamable-http' }],
    [
      { type: 'streamable-http', url: 'http://{host}:{--port}/mcp' },
      { targetPort: 3000, targetPath: '/mcp' },
    ],
    [
      { type: 'streamable-http', url: 'http://localhost:{other}/{p}' },
      { transport: 'streamable-http', targetPath: '/{p}' },
    ],
    [{ type: 'streamable-http', url: 'not a url' }, { transport: 'streamable-http' }],
  ])('%j', (transport, expected) => {
    const packageArguments = [{ type: 'named', name: '--port', default: '3000' }];
    const environmentVariables = [{ name: 'host', value: 'localhost' }];
    const plan = local(npm({ transport, packageArguments, environmentVariables }));
    expect(plan).toMatchObject(expected);
    if (!('targetPort' in expected)) expect(plan).not.toHaveProperty('targetPort');
  });

  test('takes the port from the extension when the entry has none, and never for stdio', () => {
    const http = { transport: { type: 'streamable-http' } };
    expect(local(oci(http), { target_port: 7 }).targetPort).toBe(7);
    expect(local(oci(), { target_port: 7 })).not.toHaveProperty('targetPort');
  });
});

describe('arguments', () => {
  test.each([
    ['a positional value', { type: 'positional', value: 'start' }, ['start']],
    ['a missing type', { value: 'start' }, ['start']],
    ['a named value', { type: 'named', name: '--port', value: '1' }, ['--port', '1']],
    ['a default', { type: 'named', name: '--port', default: '1' }, ['--port', '1']],
    ['a bare flag', { type: 'named', name: '--x', value: '' }, ['--x']],
    ['a required boolean', { type: 'named', name: '--x', isRequired: true, format: 'boolean' }, ['--x']],
    ['an optional input', { type: 'named', name: '--x' }, []],
    [
      'a filled template',
      { type: 'positional', value: 'a={v}', variables: { v: { default: 'b' } } },
      ['a=b'],
    ],
    ['shell characters, unharmed', { type: 'positional', value: '; rm -rf $HOME' }, ['; rm -rf $HOME']],
  ])('%s', (_, argument, args) => {
    expect(local(npm({ packageArguments: [argument] }))).toMatchObject({ args, missingArgs: [] });
  });

  test('asks for required arguments without a value', () => {
    const packageArguments = [
      { type: 'positional', valueHint: 'directory', description: 'where', isRequired: true },
      { type: 'positional', value: '{a}', variables: { a: { isRequired: true, isSecret: true } } },
    ];
    expect(local(npm({ packageArguments })).missingArgs).toMatchObject([
      { name: 'directory', description: 'where', required: true, secret: false },
      { name: 'argument 2', required: true, secret: true },
    ]);
  });

  test('beat those of the extension', () => {
    expect(local(oci(), { args: ['ext'] }).args).toEqual(['ext']);
    expect(local(oci({ packageArguments: [{ value: 'own' }] }), { args: ['ext'] }).args).toEqual(['own']);
  });
});

describe('environment', () => {
  test.each([
    [{ name: 'A' }, { name: 'A', required: false, secret: false }],
    [
      { name: 'A', isRequired: true, isSecret: true, description: 'd' },
      { required: true, secret: true, description: 'd' },
    ],
    [
      { name: 'A', default: '', choices: ['', 'x'] },
      { default: '', choices: ['', 'x'] },
    ],
    [{ name: 'A', value: 'fixed', default: 'other' }, { default: 'fixed' }],
    [
      { name: 'A', value: '{k}', variables: { k: { isSecret: true, description: 'key' } } },
      { secret: true, required: false, description: 'key' },
    ],
    [
      { name: 'A', value: 'Bearer {k}', variables: { k: { isRequired: true } } },
      { required: true, placeholder: 'Bearer {k}' },
    ],
    [
      { name: 'A', value: 'Bearer {unknown}' },
      { required: true, placeholder: 'Bearer {unknown}' },
    ],
    [{ name: 'A', value: '{constructor}', variables: {} }, { required: true }],
  ])('%j', (variable, expected) => {
    expect(local(npm({ environmentVariables: [variable] })).env).toEqual([expect.objectContaining(expected)]);
  });

  test('takes -e of the container engine in every spelling, and reports what it does not apply', () => {
    const runtimeArguments = [
      { type: 'positional', value: 'run' },
      { type: 'named', name: '--rm', value: 'true' },
      { type: 'named', name: '-i' },
      { type: 'named', name: '-e', value: 'A=1' },
      {
        type: 'named',
        name: '--env',
        value: 'TOKEN={t}',
        variables: { t: { isRequired: true, isSecret: true } },
      },
      { type: 'named', name: '-e' },
      { type: 'positional', value: 'PASSED' },
      { type: 'positional', value: '--env=B=2=3' },
      { type: 'named', name: '-v', value: '/a:/b' },
      { type: 'named', name: '--mount', value: 'type=bind,src={p},dst=/x', variables: { p: {} } },
      { type: 'named', name: '-p' },
      { type: 'positional', value: '80:80' },
      { type: 'named', name: '--privileged' },
      { type: 'positional', value: 'ghcr.io/acme/x:1' },
      { type: 'positional', value: 'ignored' },
    ];
    const plan = local(oci({ runtimeArguments, environmentVariables: [{ name: 'A', default: 'own' }] }));
    expect(plan.env).toEqual([
      { name: 'A', default: 'own', required: false, secret: false },
      { name: 'TOKEN', required: true, secret: true },
      { name: 'PASSED', required: false, secret: false },
      { name: 'B', default: '2=3', required: false, secret: false },
    ]);
    expect(plan.notApplied).toEqual([
      { flag: '-v', value: '/a:/b' },
      { flag: '--mount', value: 'type=bind,src={p},dst=/x' },
      { flag: '-p', value: '80:80' },
      { flag: '--privileged' },
    ]);
  });

  test.each([
    [['-v', 'notes:/app/notes'], '/app/notes'],
    [['--volume', '/var/lib/x'], '/var/lib/x'],
    [['--volume=a.b-c:/x'], '/x'],
    [['--mount', 'type=volume,src=a,dst=/x'], '/x'],
    [['--mount', 'source=a,target=/x'], '/x'],
    [['-v', '/home/me:/x'], undefined],
    [['-v', './rel:/x'], undefined],
    [['-v', '~/x:/x'], undefined],
    [['-v', 'a:/x:ro'], undefined],
    [['--mount', 'type=bind,src=a,dst=/x'], undefined],
    [['--mount', ''], undefined],
  ])('of %j what the server keeps is %s', (words, path) => {
    const runtimeArguments = words.map((value) => ({ type: 'positional', value }));
    const plan = local(oci({ runtimeArguments }));
    expect(plan.volumes).toEqual(path === undefined ? [] : [path]);
    expect(plan.notApplied).toHaveLength(path === undefined ? 1 : 0);
  });

  test('never takes a program, a network or a value of the caller from an entry', () => {
    const runtimeArguments = [
      { type: 'named', name: '--network', value: 'host' },
      { type: 'named', name: '--entrypoint', value: '/bin/sh' },
      ...['AWS_SECRET_ACCESS_KEY', 'GITHUB_TOKEN', 'SSH_AUTH_SOCK'].map((value) => ({
        type: 'named',
        name: '-e',
        value,
      })),
    ];
    const plan = local(npm({ runtimeHint: 'bash', runtimeArguments }));
    expect(plan.target).toEqual({ kind: 'package', ecosystem: 'npm', name: '@acme/x', version: '1.2.3' });
    expect(plan.args).toEqual([]);
    expect(plan.env.filter((one) => one.default !== undefined || one.required)).toEqual([]);
    expect(plan.notApplied.map(({ flag }) => flag)).toEqual(['--network', '--entrypoint']);
  });
});

test('takes permissions, tools and the proxy port from the extension', () => {
  const permissions = { network: { outbound: { allow_host: ['x.test'] } } };
  expect(local(oci(), { permissions, tools: ['t'], proxy_port: 9 })).toMatchObject({
    permissions,
    tools: ['t'],
    proxyPort: 9,
  });
});

test('does not run a server whose permissions cannot be read', () => {
  expect(() => local(oci(), { permissions: 'none' })).toThrow(
    expect.objectContaining({ code: 'catalog/invalid-extension' }),
  );
});

describe('remotes', () => {
  test('asks for headers and for the open variables of the URL', () => {
    const plan = remote({
      type: 'sse',
      url: 'https://{tenant}.x.test/{v}',
      variables: { tenant: { description: 'yours' }, v: { default: 'v1' } },
      headers: [{ name: 'Authorization', value: 'Bearer {key}', isRequired: true, isSecret: true }],
    });
    expect(plan).toMatchObject({
      target: { kind: 'remote', url: 'https://{tenant}.x.test/v1' },
      transport: 'sse',
      urlVariables: [{ name: 'tenant', required: true, description: 'yours' }],
      headers: [{ name: 'Authorization', required: true, secret: true, placeholder: 'Bearer {key}' }],
    });
  });
});
