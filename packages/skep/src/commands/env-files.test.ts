import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';
import { catalogueOf } from './catalogue.fixture.ts';

const variablesOf = async (skep: CommandUnderTest, name: string): Promise<unknown> =>
  (JSON.parse(await skep.output(`export ${name} -`)) as { env_vars: unknown }).env_vars;

describe('--env-file-dir', () => {
  test('files count in the order of their names, after --env-file and before -e', async () => {
    const files = {
      'one.env': 'A=file\nB=file\nC=file\nD=file\n',
      'vars/10-b': 'B=ten\nC=ten\nD=ten\n',
      'vars/20-c': 'export C="twenty"\r\nD=twenty\r\n',
      'vars/.hidden': 'A=hidden\n',
      'vars/folder/x': 'A=deeper\n',
    };
    const skep = await commandUnderTest({ files });
    await skep.output('run fake:1 --name a1 --env-file one.env --env-file-dir vars -e D=flag');
    expect(await variablesOf(skep, 'a1')).toEqual({ A: 'file', B: 'ten', C: 'twenty', D: 'flag' });
    const explained = await skep.output('run --explain fake:1 --env-file one.env --env-file-dir vars');
    expect(explained).toContain('vars/20-c');
  });

  test('a directory that is not there holds nothing', async () => {
    const skep = await commandUnderTest();
    expect((await skep.run('run fake:1 --name a1 --env-file-dir nowhere')).status).toBe(0);
    expect(await variablesOf(skep, 'a1')).toEqual({});
  });

  test('what cannot be read is left out with a warning, and the others count', async () => {
    const skep = await commandUnderTest({
      files: {
        'vars/a': '2X=1\n',
        'vars/b': 'B=1\n',
        'vars/c': 'C=a\0b\n',
        'vars/d': `D=${'x'.repeat(2 * 1024 * 1024)}\n`,
      },
    });
    await symlink('/nowhere', join(skep.cwd, 'vars', 'e'));
    await symlink('/dev/zero', join(skep.cwd, 'vars', 'f'));
    const { err } = await skep.run('run fake:1 --name a1 --env-file-dir vars');
    expect(await variablesOf(skep, 'a1')).toEqual({ B: '1' });
    const warnings = err.split('\n').filter((line) => line.startsWith('Warning: left out: '));
    expect(warnings).toHaveLength(5);
    expect(warnings[0]).toContain('invalid environment variable key "2X" in vars/a:1');
    expect(err).not.toContain('xxx');
  });

  test('what the catalogue requires or gives a default is found in it, and nobody is asked', async () => {
    const environmentVariables = [
      { name: 'TOKEN', isRequired: true, isSecret: true },
      { name: 'REGION', default: 'north' },
    ];
    const catalogue = catalogueOf({
      'com.example/keyed': {
        packages: [
          {
            registryType: 'oci',
            identifier: 'fake:1',
            transport: { type: 'stdio' },
            environmentVariables,
          },
        ],
      },
    });
    const skep = await commandUnderTest({ catalogue, files: { 'vars/all': 'TOKEN=t\nREGION=south\n' } });
    await skep.output('run keyed --env-file-dir vars', { answers: {} });
    expect(skep.asked).toEqual([]);
    expect(await variablesOf(skep, 'keyed')).toEqual({ REGION: 'south' });
  });

  test.each([
    ['vars/a', 'is not a directory; name a directory that you may read'],
    ['many', 'holds 257 files; at most 256 files'],
    ['large', 'holds more than 4194304 characters of variables; at most 256 files'],
  ])('%s is refused', async (directory, said) => {
    const skep = await commandUnderTest({ files: { 'vars/a': 'A=1\n' } });
    await mkdir(join(skep.cwd, 'large'));
    for (let at = 0; at < 257; at += 1) await skep.write(`many/${at}`, '');
    for (let at = 0; at < 5; at += 1) await skep.write(`large/${at}`, `A=${'x'.repeat(1_000_000)}\n`);
    expect(await skep.refusal(`run fake:1 --env-file-dir ${directory}`)).toContain(said);
  });

  test('an imported file that names such a directory is refused by the key', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1');
    await skep.output('export a1 a1.json');
    await skep.output('rm a1');
    const config = JSON.parse(await skep.read('a1.json')) as object;
    await skep.write('a1.json', { ...config, env_file_dir: '/vault' });
    expect(await skep.refusal('run --from-config a1.json')).toContain(
      '"env_file_dir", which is not available yet',
    );
  });
});
