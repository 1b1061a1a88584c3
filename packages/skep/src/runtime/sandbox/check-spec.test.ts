import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { WorkloadSpec } from '../runtime.ts';
import { checkMounts, checkSpec } from './check-spec.ts';
import { STDIO_SPEC } from '../doubles/stdio-spec.ts';

const SPEC = { ...STDIO_SPEC, reference: 'npm-x@1-0123456789ab' };
const port = (hostPort: number, containerPort: number) => ({ hostIp: '127.0.0.1', hostPort, containerPort });
const at = (target: string, source = '/') => ({ source, target, readOnly: true });
const refusal = (message: string) => ({
  code: 'runtime/invalid-workload',
  message: expect.stringContaining(message) as unknown,
});

describe('a workload for the sandbox', () => {
  test.each<[string, Partial<WorkloadSpec>, boolean]>([
    ['a port as it is in the machine’s network', { ports: [port(80, 80)] }, false],
    ['a port that is translated into a network of its own', { ports: [port(8080, 80)] }, true],
    ['no network at all', { network: 'none' }, true],
    ['the machine’s network', { network: 'host' }, true],
    ['a mount beside others', { mounts: [at('/data'), at('/data-2')] }, true],
    ['a mount at the same depth in another directory', { mounts: [at('/srv/a'), at('/srv/b')] }, true],
  ])('may have %s', async (_, more, ownNetwork) => {
    await checkSpec({ ...SPEC, ...more }, ownNetwork);
  });

  test.each<[string, Partial<WorkloadSpec>, boolean, string]>([
    ['rights of the engine', { privileged: true }, true, 'privileged workloads are not possible'],
    ['a network of an engine', { network: 'mine' }, true, 'no network "mine"'],
    ['an empty network', { network: '' }, true, 'no network ""'],
    [
      'a port without a network',
      { network: 'none', ports: [port(80, 80)] },
      true,
      'port 80 cannot be reached',
    ],
    ['a translated port in the machine’s network', { ports: [port(8080, 80)] }, false, 'map port 8080 to 80'],
    ['a port that nobody names', { ports: [port(0, 80)] }, true, 'map port 0 to 80'],
    ['an argument with NUL', { args: ['a\0b'] }, true, 'cannot contain NUL'],
    ['a value with NUL', { env: { A: '\0' } }, true, 'cannot contain NUL'],
    ['a variable without a name', { env: { '': 'x' } }, true, '"" is no name'],
    ['a variable that would set another one', { env: { 'A=B': 'x' } }, true, '"A=B" is no name'],
  ])('is refused %s', async (_, more, ownNetwork, message) => {
    await expect(checkSpec({ ...SPEC, ...more }, ownNetwork)).rejects.toMatchObject(refusal(message));
  });

  test.each(['', '-a', '../a', 'a/b', 'a b', 'a\0', 'x'.repeat(300)])(
    'is refused the name %j',
    async (name) => {
      await expect(checkSpec({ ...SPEC, name }, true)).rejects.toThrow();
    },
  );
});

describe('a mount in the sandbox', () => {
  const OWN = [
    '/',
    '/proc',
    '/sys/kernel',
    '/dev',
    '/app',
    '/app/x',
    '/skep',
    '/usr',
    '/etc',
    '/bin',
    '/lib64',
  ];
  test.each([...OWN, '//etc', '/etc/', '/./etc', 'data', '', '/data/../etc', '/data/../other', '/..'])(
    'never covers what the sandbox is made of: %j',
    async (target) => {
      await expect(checkMounts({ mounts: [at(target)] })).rejects.toMatchObject(
        refusal('cannot be a mount target'),
      );
    },
  );

  test.each([
    [['/data', '/data/inner'], '/data/inner'],
    [['/data/inner', '/data'], '/data/inner'],
    [['/data/', '/data/inner'], '/data/inner'],
  ])('lies below no other, where a server could put a link in its way: %j', async (targets, below) => {
    await expect(checkMounts({ mounts: targets.map((target) => at(target)) })).rejects.toMatchObject(
      refusal(`mount target "${below}" lies below`),
    );
  });

  test('needs a source that is there', async () => {
    await expect(checkMounts({ mounts: [at('/data', '/nowhere/at/all')] })).rejects.toMatchObject(
      refusal('mount source "/nowhere/at/all" does not exist'),
    );
  });

  test('is refused, whatever its target is written like, when it means a place of the sandbox', async () => {
    const dots = fc.array(fc.constantFrom('', '.'), { maxLength: 3 });
    const target = fc
      .tuple(
        dots,
        fc.constantFrom('etc', 'usr', 'proc', 'app', 'lib'),
        fc.array(fc.constantFrom('', '.', 'x'), { maxLength: 3 }),
      )
      .map(([before, name, after]) => `/${[...before, name, ...after].join('/')}`);
    await fc.assert(
      fc.asyncProperty(target, async (text) => {
        await expect(checkMounts({ mounts: [at(text)] })).rejects.toMatchObject({
          code: 'runtime/invalid-workload',
        });
      }),
    );
  });
});
