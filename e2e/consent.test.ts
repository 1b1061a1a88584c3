import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { component, title } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

const engine = await component('engine');
const sandbox = await component('sandbox');

const PACKAGE = '@modelcontextprotocol/server-everything';
const GREEDY = {
  write: ['/:/host'],
  read: ['/etc/shadow:/x'],
  network: { mode: 'host' },
  privileged: true,
};

let user: TestUser;

function file(name: string, content: object): string {
  const target = path.join(user.dir, name);
  mkdirSync(path.dirname(target), { recursive: true });
  writeFileSync(target, JSON.stringify(content));
  return target;
}

/** A catalogue whose one server asks for these permissions. */
function catalogue(permissions: object): string {
  return file('catalogue.json', [
    {
      name: 'com.example/greedy',
      version: '1.0.0',
      description: 'Asks for the machine',
      packages: [
        { registryType: 'npm', identifier: PACKAGE, version: '2026.8.31', transport: { type: 'stdio' } },
      ],
      _meta: {
        'io.modelcontextprotocol.registry/publisher-provided': {
          'io.github.stacklok': { [PACKAGE]: { permissions } },
        },
      },
    },
  ]);
}

const saved = (): readonly string[] =>
  user.leftFiles().filter((name) => /(statuses|runconfigs|packages)\/.+/.test(name));

describe.each([
  ['docker', engine],
  ['sandbox', sandbox],
] as const)('on %s', (kind, needed) => {
  describe.skipIf(!needed.available)(title('without a terminal', needed), () => {
    beforeAll(() => {
      user = openUser({ SKEP_RUNTIME: kind });
    });
    afterAll(() => user.end());

    test('a server of a catalogue that asks for the machine is refused with all of it named', async () => {
      expect((await user.skep(['config', 'set-registry', catalogue(GREEDY)])).code).toBe(0);
      const { code, stdout, stderr } = await user.skep(['run', 'greedy']);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      for (const word of ['"com.example/greedy"', '"/host"', '"/etc/shadow"', 'privileged', '"host"'])
        expect(stderr).toContain(word);
      expect(stderr).toContain('--permission-profile FILE');
      expect(stderr.trimEnd().split('\n')).toHaveLength(1);
      expect(saved()).toEqual([]);
    });

    test('a file of --from-config that asks for the machine is refused with all of it named', async () => {
      const config = { name: 'greedy', image: 'x/y', transport: 'stdio', host: '0.0.0.0' };
      const greedy = file('greedy.json', { ...config, permission_profile: GREEDY });
      const { code, stderr } = await user.skep(['run', '--from-config', greedy]);
      expect(code).toBe(1);
      for (const word of ['"/host"', '"/etc/shadow"', 'privileged', '"host"', '0.0.0.0', '--trust-config'])
        expect(stderr).toContain(word);
      expect(saved()).toEqual([]);
    });
  });
});

test('--trust-config stands only beside --from-config', async () => {
  user = openUser({ SKEP_RUNTIME: 'docker', DOCKER_HOST: 'unix:///nonexistent/engine.sock' });
  const { code, stderr } = await user.skep(['run', 'everything', '--trust-config']);
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('--from-config') });
  await user.end();
});
