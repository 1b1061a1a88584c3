import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  commandUnderTest,
  openCommandUnderTest,
  type CommandUnderTest,
} from '../command-under-test.fixture.ts';
import { catalogueOf, imagePackage, type EntryUnderTest } from './catalogue.fixture.ts';

const withVariables = (...environmentVariables: object[]): EntryUnderTest => ({
  packages: [imagePackage({ environmentVariables })],
});
const overHttp = (url: string): EntryUnderTest => ({
  packages: [imagePackage({ transport: { type: 'streamable-http', url } })],
});

const CATALOGUE = catalogueOf({
  'com.example/plain': {},
  'com.example/nothing': { packages: [] },
  'com.example/bundle': {
    packages: [
      {
        registryType: 'mcpb',
        identifier: 'https://x.example/a.mcpb',
        fileSha256: 'a'.repeat(64),
        transport: { type: 'stdio' },
      },
    ],
  },
  'com.example/npm': {
    packages: [
      { registryType: 'npm', identifier: 'Bad Name', version: '1.0.0', transport: { type: 'stdio' } },
    ],
  },
  'a.example/twin': {},
  'b.example/twin': {},
  'com.example/wide': {
    extension: {
      permissions: { privileged: true, network: { mode: 'host' }, write: ['/etc'], read: ['/home'] },
    },
  },
  'com.example/damaged': { extension: { permissions: { read: ['a:b:c:d'] } } },
  'com.example/keyed': withVariables(
    { name: 'TOKEN', description: 'Token of the service', isRequired: true, isSecret: true },
    { name: 'REGION', isRequired: true },
  ),
  'com.example/choosy': withVariables({ name: 'MODE', choices: ['fast', 'slow'] }),
  'com.example/quiet': withVariables({ name: 'MODE', isSecret: true, choices: ['fast', 'slow'] }),
  'com.example/portless': overHttp('http://localhost/mcp'),
  'com.example/http': overHttp('http://localhost:8080/mcp'),
  'com.example/remote': { remotes: [{ type: 'streamable-http', url: 'https://x.example/mcp' }] },
  'com.example/argued': {
    packages: [
      imagePackage({
        packageArguments: [
          { type: 'positional', valueHint: 'dir', isRequired: true, description: 'Where' },
          { type: 'named', name: '--level', isRequired: true },
        ],
      }),
    ],
  },
});

const NO_ORIGIN =
  'Warning: where the image "fake:1" comes from is not verified: no catalogue says who signs it\n';

/** What to run, with its flags, and what it is refused with: what is wrong, and after the semicolon what to do. */
type Row = readonly [target: string, message: string];

let machines: readonly CommandUnderTest[];
beforeAll(async () => {
  machines = await Promise.all([
    openCommandUnderTest({ supervisor: 'up', catalogue: CATALOGUE }),
    openCommandUnderTest({ supervisor: 'asked', catalogue: CATALOGUE }),
  ]);
});
afterAll(async () => {
  await Promise.all(machines.map((machine) => machine.close()));
});

async function isRefused(target: string, message: string): Promise<void> {
  for (const machine of machines) {
    const said = await machine.refusal(`run ${target}`);
    expect(said.replaceAll(machine.home, 'HOME')).toBe(`Error: ${message}\n`);
  }
}

describe('what cannot be something to run', () => {
  test.each<Row>([
    ['https://', 'invalid URL "https://"; it names no host'],
    [
      'foo://bar',
      'invalid protocol scheme: "foo://"; supported schemes are npx://, uvx://, go://, http:// and https://',
    ],
    [
      'NPX://x',
      'invalid protocol scheme: "NPX://"; supported schemes are npx://, uvx://, go://, http:// and https://',
    ],
    [
      'npx://',
      'invalid package reference "npx://": "" is no npm package name; write it like npx://@scope/name@1.2.3',
    ],
    [
      'npx://a$b',
      'invalid package reference "npx://a$b": "a$b" is no npm package name; write it like npx://@scope/name@1.2.3',
    ],
    [
      'npx://a@;rm',
      'invalid package reference "npx://a@;rm": ";rm" is no version; write it like npx://@scope/name@1.2.3',
    ],
    [
      'npx://../x',
      'invalid package reference "npx://../x": "../x" is no npm package name; write it like npx://@scope/name@1.2.3',
    ],
    [
      'uvx://a;b',
      'invalid package reference "uvx://a;b": "a;b" is no pypi package name; write it like uvx://name@1.2.3',
    ],
    [
      'uvx://a[extra]',
      'invalid package reference "uvx://a[extra]": "a[extra]" is no pypi package name; write it like uvx://name@1.2.3',
    ],
    [
      'go://x/y',
      'invalid package reference "go://x/y": "x/y" is no go package name; write it like go://example.org/path@v1.2.3',
    ],
    [
      'go://./...',
      'invalid package reference "go://./...": it names several packages; name the directory of one program, such as go://./cmd/server',
    ],
  ])('run %s is refused', isRefused);
});

describe('what the catalogue has, and cannot be run as it is', () => {
  test.each<Row>([
    [
      'Plain',
      'server "Plain" not found in the catalogue at HOME/catalogue.json; did you mean com.example/plain?',
    ],
    [
      'absent',
      'server "absent" not found in the catalogue at HOME/catalogue.json; find names with skep search; an image is written like org/image:tag',
    ],
    ['twin', 'more than one server matches "twin": a.example/twin, b.example/twin; use the full name'],
    [
      'nothing',
      'cannot run "com.example/nothing": it names no package and no remote; choose another server, or run its image or package directly',
    ],
    [
      'bundle',
      'cannot run "com.example/bundle": packages of type "mcpb" are not supported; choose another server, or run its image or package directly',
    ],
    [
      'npm',
      'cannot run "com.example/npm": "Bad Name" is no npm package name; choose another server, or run its image or package directly',
    ],
    [
      'portless --image-verification disabled',
      'which port does the server listen on? The image declares no port; name it with --target-port',
    ],
    [
      'http --network none',
      'a server without network cannot be reached over HTTP; add --isolate-network, use --permission-profile network, or --transport stdio if the server speaks it',
    ],
    [
      'http --permission-profile none',
      'a server without network cannot be reached over HTTP; add --isolate-network, use --permission-profile network, or --transport stdio if the server speaks it',
    ],
    [
      'damaged',
      'invalid volume format: "a:b:c:d" (too many colons); write host-path:container-path, with :ro at the end for read-only',
    ],
    [
      'argued',
      '"com.example/argued" needs arguments: dir (Where), --level; give them after --: skep run argued -- DIR --LEVEL',
    ],
  ])('run %s is refused', isRefused);
});

describe('what the catalogue requires', () => {
  test.each<Row>([
    [
      'keyed',
      'missing required environment variables: TOKEN, REGION; give them with -e TOKEN (from your environment) or --env-file; a terminal asks for secrets unseen',
    ],
    [
      'keyed -e TOKEN=a',
      'missing required environment variable: REGION; give it with -e REGION=VALUE or --env-file',
    ],
    [
      'keyed -e TOKEN= -e REGION=x',
      'missing required environment variable: TOKEN (Token of the service); give it with -e TOKEN (from your environment) or --env-file; a terminal asks for secrets unseen',
    ],
    [
      'choosy -e MODE=odd',
      'the environment variable MODE is "odd", none of: fast, slow; write KEY=VALUE; a key has letters, digits and underscores',
    ],
    [
      'quiet -e MODE=odd',
      'the environment variable MODE has a value that is none of: fast, slow; write KEY=VALUE; a key has letters, digits and underscores',
    ],
    [
      'wide',
      '"com.example/wide" of the catalogue asks to read "/home", write "/etc", run privileged, with all rights of the engine, use the network "host", which is not granted; grant it with --permission-profile FILE, or run it without with --permission-profile network',
    ],
    [
      'wide --network none',
      '"com.example/wide" of the catalogue asks to read "/home", write "/etc", run privileged, with all rights of the engine, which is not granted; grant it with --permission-profile FILE, or run it without with --permission-profile network',
    ],
  ])('run %s is refused', isRefused);

  test('a value from a file of variables counts, so that nobody is asked for it', async () => {
    const skep = await commandUnderTest({ catalogue: CATALOGUE, files: { env: 'TOKEN=a\nREGION=b\n' } });
    await skep.output('run keyed --env-file env', { answers: {} });
    expect(skep.asked).toEqual([]);
  });

  test('a person is asked for each value that is missing, and no answer is no value', async () => {
    const skep = await commandUnderTest({ catalogue: CATALOGUE });
    const said = await skep.refusal('run keyed', { answers: { TOKEN: 'secret' } });
    expect(skep.asked).toEqual(['TOKEN', 'REGION']);
    expect(said).toBe(
      'Error: missing required environment variable: REGION; give it with -e REGION=VALUE or --env-file\n',
    );
    await skep.output('run keyed', { answers: { TOKEN: 'secret', REGION: 'north' } });
    expect(JSON.parse(await skep.output('export keyed -'))).toMatchObject({ env_vars: { REGION: 'north' } });
  });

  test('a value that was asked for as a secret leaves the machine in no export', async () => {
    const skep = await commandUnderTest({ catalogue: CATALOGUE });
    await skep.output('run keyed', { answers: { TOKEN: 'hunter2', REGION: 'north' } });
    expect(await skep.output('export keyed -')).not.toContain('hunter2');
  });

  test('rights on this machine are asked for by name, and a no ends it', async () => {
    const skep = await commandUnderTest({ catalogue: CATALOGUE });
    const said = await skep.refusal('run wide', { agrees: false });
    expect(said).toContain('which is not granted');
    expect(skep.asked).toEqual([
      [
        '"com.example/wide" of the catalogue asks to',
        '- read "/home"',
        '- write "/etc"',
        '- run privileged, with all rights of the engine',
        '- use the network "host"',
        'Allow it?',
      ].join('\n'),
    ]);
  });

  test('a profile of the person stands instead of what the catalogue wishes, and nobody is asked', async () => {
    const skep = await commandUnderTest({ catalogue: CATALOGUE });
    await skep.output('run wide --permission-profile none', { agrees: false });
    expect(skep.asked).toEqual([]);
    expect((await skep.runtime.list())[0]).toMatchObject({ name: 'wide', state: 'running' });
  });
});

describe('a catalogue that cannot be read', () => {
  test.each([
    [
      'local_registry_path: /missing.json',
      'the catalogue file "/missing.json" cannot be read: ENOENT; check the address with skep config get-registry',
    ],
    [
      'local_registry_path: /',
      'the catalogue file "/" cannot be read: EISDIR; check the address with skep config get-registry',
    ],
    [
      'registry_url: http://127.0.0.1:1/c.json',
      'the address of "127.0.0.1" is not public; allow private addresses if the server is meant to be local',
    ],
    [
      'registry_api_url: http://127.0.0.1:1',
      'the address of "127.0.0.1" is not public; allow private addresses if the server is meant to be local',
    ],
    ['registry_url: x', '"x" is not an http or https URL; give an absolute http or https URL'],
  ])(
    'never turns a name into somebody’s public image, nor an empty list into the truth (%s)',
    async (configuration, message) => {
      const skep = await commandUnderTest({ supervisor: 'asked' });
      await skep.configure(`${configuration}\n`);
      for (const line of ['run plain', 'search plain', 'registry list', 'registry info plain']) {
        expect(await skep.refusal(line)).toBe(`Error: ${message}\n`);
      }
    },
  );

  test('that nobody listens there is told with the address', async () => {
    const skep = await commandUnderTest({ supervisor: 'asked' });
    await skep.configure('registry_url: https://127.0.0.1:1/c.json\nallow_private_registry_ip: true\n');
    expect(await skep.refusal('run plain')).toBe(
      'Error: cannot reach "https://127.0.0.1:1/c.json": ECONNREFUSED; check the address and the network\n',
    );
  });

  test.each([
    ['nonsense: 1', ':1:1: unknown key "nonsense"; remove it, or correct its spelling'],
    [
      'allow_private_registry_ip: perhaps',
      ':1:28: invalid value "perhaps" for key "allow_private_registry_ip": it must be true or false; correct the named key and try again',
    ],
  ])('a configuration file that says %s is told with the place', async (configuration, message) => {
    const skep = await commandUnderTest();
    await skep.configure(`${configuration}\n`);
    for (const line of ['run fake:1', 'search plain', 'config get-registry']) {
      expect(await skep.refusal(line)).toBe(`Error: ${skep.places.configFile}${message}\n`);
    }
  });

  test('an image needs no catalogue that speaks the registry API, so its outage holds up nobody', async () => {
    const skep = await commandUnderTest();
    await skep.configure('registry_api_url: http://127.0.0.1:1\n');
    await skep.output('run fake:1');
  });
});

describe('an image or package that is not there', () => {
  test.each(['absent/image:1', 'npx://absent', 'uvx://absent@1.0.0', 'fake@sha256:00'])(
    'run %s says so after it was tried, and nothing of it is left',
    async (target) => {
      for (const machine of machines) {
        const said = await machine.refusal(`run ${target} --image-verification disabled`);
        expect(said).toMatch(/^Pulling .*\nError: nothing is known as ".*"; .*\n$/);
      }
    },
  );

  test('where an image comes from is told to be unverified, unless the person said not to', async () => {
    const skep = await commandUnderTest();
    expect((await skep.run('run fake:1 --name a1')).err).toContain(NO_ORIGIN);
    const quiet = await skep.run('run fake:1 --name a2 --image-verification disabled');
    expect(quiet.err).not.toContain('verified');
  });

  test('flags of a build are told to have no effect on an image', async () => {
    const skep = await commandUnderTest();
    const { err } = await skep.run('run fake:1 --runtime-add-package git');
    expect(err).toContain('Warning: --runtime-add-package has no effect on an image\n');
  });
});
