import { execFile } from 'node:child_process';
import { chmod } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type IdentityProvider, startIdentityProvider } from './fixtures/identity-provider.ts';
import { blocksOf } from './page-blocks.ts';
import { programFile, RegistryFolder } from './registry/process.ts';

// The guide as a newcomer follows it: its files are written, its commands are run by a shell. Replaced are the address of
// the identity provider, the port, and where `skep-registry` comes from.

const only = await blocksOf('docs/guide/protect-a-registry.md');

let idp: IdentityProvider;
let folder: RegistryFolder;
/** Where `localhost:8080` of the guide is. */
let address = 'localhost:8080';
let people: Readonly<Record<string, string>>;

beforeAll(async () => {
  [idp, folder] = [await startIdentityProvider(), await RegistryFolder.create()];
  people = {
    ALICE: await idp.token({ sub: 'alice', org: 'acme' }),
    BOB: await idp.token({ sub: 'bob', org: 'other' }),
    PAULA: await idp.token({ sub: 'paula', org: 'acme', team: 'platform', role: 'publisher' }),
  };
  const command = await folder.write(
    'skep-registry',
    `#!/bin/sh\nexec "${process.execPath}" "${programFile()}" "$@"\n`,
  );
  await chmod(command, 0o700);
  const issuer = `issuerUrl: ${idp.issuer}\n        allowPrivateIP: true`;
  await folder.write('registry.yaml', only('yaml').replace(/issuerUrl: .*/, issuer));
  await folder.write('catalogue.json', only('json'));
});
afterAll(async () => {
  await folder.remove();
  await idp.stop();
});

/** What a shell in the folder prints for a command of the guide. Fails when the command does. */
async function shell(command: string): Promise<string> {
  const { stdout } = await promisify(execFile)('sh', ['-c', command.replaceAll('localhost:8080', address)], {
    cwd: folder.path,
    env: {
      ...people,
      HOME: folder.path,
      SKEP_FRONT_PORT: '0',
      PATH: `${folder.path}:${path.dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
    },
  });
  return stdout;
}

interface Promised {
  readonly command: string;
  readonly status: string;
  readonly words: string;
}

/** The commands of a block that sets a variable first, each with the comment at its end: `# STATUS words`. */
function promises(text: string): Promised[] {
  const [variable = '', ...lines] = text.split('\n');
  return [...lines.join('\n').matchAll(/([^]*?) # (\d{3}) (.*)\n/g)].map(
    ([, command = '', status = '', words = '']) => ({
      command: `${variable}\n${command}`,
      status,
      words,
    }),
  );
}

describe('the guide "Protect a registry with your identity provider"', () => {
  test('shows how to look at a token', async () => {
    const token: unknown = JSON.parse(await shell(only('sh', 'node -p')));
    expect(token).toMatchObject({ iss: idp.issuer, aud: 'mcp-registry', team: 'platform' });
  });

  test('has a configuration that is valid', async () => {
    expect(await shell(only('sh', 'validate'))).toContain('is valid');
  });

  test('gives every caller what it promises, and says why', async () => {
    expect(only('sh', 'skep-registry serve').trim()).toBe('skep-registry serve --config registry.yaml');
    const running = await folder.serve('registry.yaml');
    address = new URL(running.open).host;
    expect(running.stderr()).toContain('"msg":"serving"');
    const tried = promises(only('sh', 'curl'));
    expect(tried).toHaveLength(7);
    for (const { command, status, words } of tried) {
      const answer = await shell(command);
      expect([command, answer]).toEqual([command, expect.stringMatching(`^HTTP/1.1 ${status} `)]);
      expect(answer).toContain(words);
    }
    expect(await shell(only('sh', 'explain'))).toContain(only('text'));
    await running.stop();
  });
});

test.each(['README.md', 'packages/registry/README.md'])('the catalogue of %s is served', async (page) => {
  const readme = await blocksOf(page);
  const own = await RegistryFolder.create();
  const config = await own.write('registry.yaml', readme('yaml'));
  await own.write('catalogue.json', readme('json'));
  const running = await own.serve(config);
  const list = await fetch(`${running.open}/registry/all/v0.1/servers`);
  expect(await list.json()).toMatchObject({ servers: [{ server: { name: 'com.example/weather' } }] });
  await own.remove();
});
