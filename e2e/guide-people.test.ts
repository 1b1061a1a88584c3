import { execFile } from 'node:child_process';
import { chmod } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from './fixtures/free-port.ts';
import { PIPELINE, type PeopleProvider, startPeopleProvider } from './fixtures/people-provider.ts';
import { standInBrowser } from './fixtures/stand-in-browser.ts';
import { blocksOf } from './page-blocks.ts';
import { programFile, RegistryFolder } from './registry/process.ts';
import { component, title } from './require.ts';
import { openUser, skepEntry, type TestUser } from './skep.ts';

// The pages for people and pipelines, after the one that protects a registry: their files are written, their commands are run
// by a shell. Replaced are the addresses of the provider and the registry, and where the programs come from.

const PEOPLE = {
  paula: { org: 'acme', team: 'platform', role: 'publisher' },
  pipeline: { org: 'acme', team: 'platform', role: 'publisher' },
};
const protect = await blocksOf('docs/guide/protect-a-registry.md');
const needed = [await component('npm'), await component('sandbox')];

let idp: PeopleProvider;
let folder: RegistryFolder;
let paula: TestUser;
let address: string;

beforeAll(async () => {
  [idp, folder] = [await startPeopleProvider(PEOPLE), await RegistryFolder.create()];
  const port = await freePort();
  address = `localhost:${port}`;
  for (const [name, entry] of [
    ['skep-registry', programFile()],
    ['skep', skepEntry()],
  ] as const) {
    const file = await folder.write(name, `#!/bin/sh\nexec "${process.execPath}" -- "${entry}" "$@"\n`);
    await chmod(file, 0o700);
  }
  paula = openUser({
    SKEP_SECRETS_PASSWORD: 'correct horse',
    SKEP_RUNTIME: 'sandbox',
    BROWSER: standInBrowser(folder.path, 'paula').program,
    CLIENT_ID: PIPELINE.id,
    CLIENT_SECRET: PIPELINE.secret,
  });
  const config = protect('yaml')
    .replace(/issuerUrl: .*/, `issuerUrl: ${idp.issuer}\n        allowPrivateIP: true`)
    .replaceAll('localhost:8080', address);
  await folder.write('catalogue.json', protect('json'));
  await folder.serve(await folder.write('registry.yaml', config), port);
});
afterAll(async () => {
  await paula.end();
  await folder.remove();
  await idp.stop();
});

interface Outcome {
  readonly said: string;
  readonly code: number;
}

/** What a line of a page does in a shell of the folder. */
function shell(line: string): Promise<Outcome> {
  const own = line
    .replaceAll('localhost:8080', address)
    .replaceAll(/https:\/\/idp\.example\.com(?:\/realms\/acme)?/g, idp.issuer);
  const env = {
    ...paula.env,
    PATH: `${folder.path}:${path.dirname(process.execPath)}:${paula.env['PATH'] ?? ''}`,
  };
  return new Promise((resolve) => {
    execFile('sh', ['-c', own], { cwd: folder.path, env }, (error, stdout, stderr) =>
      resolve({
        said: stdout + stderr,
        code: typeof error?.code === 'number' ? error.code : error === null ? 0 : 1,
      }),
    );
  });
}

/** Runs the lines of a block one after the other; each prints what its comment says. */
async function run(block: string, before = ''): Promise<void> {
  for (const line of block.split('\n').filter((one) => one.trim() !== '')) {
    const [command = '', promised = ''] = line.split(/ +# /);
    const { said, code } = await shell(`${before}\n${command}`);
    const own = promised.replaceAll('localhost:8080', address);
    expect([command, said, code]).toEqual([command, expect.stringContaining(own), 0]);
  }
}

describe('the guide "Sign in, publish and run"', async () => {
  const page = await blocksOf('docs/guide/sign-in-and-publish.md');

  test('signs in with one address, and publishes what one sees then', async () => {
    await run(
      page('sh', 'skep login').replace('skep login', `skep login --callback-port ${await freePort()}`),
    );
    await run(page('sh', 'skep whoami'));
    await folder.write('server.json', page('json'));
    await run(page('sh', 'skep publish'));
  });

  test.skipIf(needed.some((one) => !one.available))(
    title('finds it, runs it, and takes it back', ...needed),
    async () => {
      await run(page('sh', 'skep run'));
      expect((await shell('skep list')).said).toMatch(/memory .*running/);
      await run(page('sh', 'skep unpublish'));
      expect((await shell('skep search weather')).said).toContain('you are signed in as nobody');
    },
  );
});

describe('the guide "Publish from a pipeline"', async () => {
  const page = await blocksOf('docs/guide/publish-from-a-pipeline.md');

  test('gets a token, tries out and publishes, and fails where the version is taken', async () => {
    await folder.write('server.json', page('json'));
    expect(await shell(page('sh', 'curl'))).toEqual({ said: '', code: 0 });
    const [first = '', second = '', ...lines] = page('sh', 'SKEP_TOKEN_FILE').split('\n');
    await run(lines.join('\n'), `${first}\n${second}`);
    const again = await shell([first, second, ...lines].join('\n'));
    expect([again.code, again.said]).toEqual([1, expect.stringContaining('version already exists')]);
  });

  test('as one script publishes nothing after a check that failed', async () => {
    const { description: _, ...invalid } = JSON.parse(page('json')) as Readonly<Record<string, string>>;
    await folder.write('server.json', JSON.stringify({ ...invalid, version: '9.9.9' }));
    const { said, code } = await shell(`${page('sh', 'curl')}\n${page('sh', 'SKEP_TOKEN_FILE')}`);
    expect([said, code]).toEqual([expect.stringContaining('not valid by the official schema'), 1]);
    expect(said).not.toContain('Published');
  });

  test('has a workflow that installs Skep and runs those blocks', () => {
    expect(page('yaml')).toMatch(/npm install --global .*[^]*sh \.\/publish\.sh/);
  });
});
