import { afterAll, beforeAll, expect, test } from 'vitest';
import { openCommandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';
import { catalogueOf, imagePackage, type EntryUnderTest } from './catalogue.fixture.ts';

const image = (more: object): EntryUnderTest => ({ packages: [imagePackage(more)] });
const packaged = (more: object): EntryUnderTest => ({
  packages: [
    { registryType: 'npm', identifier: 'a', version: '1.0.0', transport: { type: 'stdio' }, ...more },
  ],
});
const allowed = (permissions: object): EntryUnderTest => ({ extension: { permissions } });
const variable = (more: object): EntryUnderTest => image({ environmentVariables: [more] });

/** What a publisher may try, and what it is refused with. */
const TRIED: Readonly<Record<string, readonly [entry: EntryUnderTest, message: string]>> = {
  shell: [image({ identifier: 'fake:1;id' }), '"fake:1;id" is no image reference'],
  flag: [image({ identifier: '--privileged' }), '"--privileged" is no image reference'],
  file: [image({ identifier: 'file:///etc/passwd' }), '"file:///etc/passwd" is no image reference'],
  escape: [image({ identifier: 'a\u001B[2J' }), '"a�[2J" is no image reference'],
  address: [
    packaged({ identifier: 'git+ssh://x.example/a' }),
    '"git+ssh://x.example/a" is no npm package name',
  ],
  parent: [packaged({ identifier: '../a' }), '"../a" is no npm package name'],
  option: [
    packaged({ registryType: 'pypi', version: '1 --index-url http://x' }),
    '"1 --index-url http://x" is no exact version',
  ],
  extra: [
    packaged({ registryType: 'pypi', identifier: 'a @ file:///x' }),
    '"a @ file:///x" is no pypi package name',
  ],
  name: [variable({ name: 'A B' }), '"A B" is no name of an environment variable'],
  nul: [variable({ name: 'A', default: 'x\0y' }), 'a value of it contains NUL'],
  argument: [
    image({ packageArguments: [{ type: 'positional', value: 'x\0y' }] }),
    'a value of it contains NUL',
  ],
  socket: [
    allowed({ read: ['/var/run/docker.sock'] }),
    'asks to read "/var/run/docker.sock", which is not granted',
  ],
  root: [allowed({ write: ['/:/x'] }), 'asks to write "/" (as "/x"), which is not granted'],
  climbing: [
    allowed({ read: ['/srv/../etc/shadow:/x'] }),
    'asks to read "/etc/shadow" (as "/x"), which is not granted',
  ],
  pasted: [allowed({ write: ['/a;id:/b'] }), 'invalid volume format: "/a;id:/b" (it contains one of'],
  container: [
    allowed({ network: { mode: 'container:db' } }),
    'asks to use the network "container:db", which is not granted',
  ],
  port: [
    allowed({ network: { outbound: { allow_port: [99_999] } } }),
    'allow_port.0 must be a whole number from 1 to 65535',
  ],
};

let skep: CommandUnderTest;
beforeAll(async () => {
  const entries = Object.entries(TRIED).map(([name, [entry]]) => [`com.example/${name}`, entry]);
  skep = await openCommandUnderTest({
    catalogue: catalogueOf(Object.fromEntries(entries) as Record<string, EntryUnderTest>),
  });
});
afterAll(() => skep.close());

test.each(Object.entries(TRIED))(
  'an entry that tries "%s" is refused, with nothing fetched',
  async (name, [, message]) => {
    expect(await skep.refusal(`run ${name}`)).toContain(message);
    expect(skep.runtime.prepared).toEqual([]);
  },
);
