import { describe, expect, test } from 'vitest';
import { commandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';
import { catalogueOf } from './catalogue.fixture.ts';

/** What a shell is offered for these words, the last of which is being typed. */
async function offered(skep: CommandUnderTest, ...words: readonly string[]): Promise<readonly string[]> {
  const out = await skep.output(['complete', '--', ...words]);
  return out.split('\n').flatMap((line) => (line === '' ? [] : [line.split('\t')[0] ?? '']));
}

describe('skep completion', () => {
  test.each(['bash', 'zsh', 'fish'])('prints a script for %s that asks skep at each Tab', async (shell) => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    const script = await skep.output(`completion ${shell}`);
    expect(script).toContain('command skep complete -- ');
    // What goes wrong at a Tab must not be written over the line that somebody types.
    expect(script).toContain('2>/dev/null');
    expect(script).not.toContain('\\$');
  });

  test.each([
    ['completion', 'missing argument SHELL; run the command with --help to see its arguments'],
    ['completion tcsh', 'unknown shell "tcsh"; choose one of: bash, zsh, fish'],
    ['completion bash zsh', 'unexpected argument "zsh"; run the command with --help to see its arguments'],
  ])('%s is refused', async (line, message) => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(await skep.refusal(line)).toBe(`Error: ${message}\n`);
  });
});

describe('skep complete', () => {
  test('offers the workloads that there are, and none twice', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name alpha');
    await skep.output('run fake:1 --name beta');
    await skep.output('stop beta');
    for (const command of ['stop', 'start', 'restart', 'rm', 'logs', 'status', 'export']) {
      expect(await offered(skep, command, '')).toEqual(['alpha', 'beta']);
      expect(await offered(skep, command, 'b')).toEqual(['beta']);
    }
    expect(await offered(skep, 'stop', 'alpha', '')).toEqual(['beta']);
  });

  test('offers the servers of the catalogue by short and by full name', async () => {
    const catalogue = catalogueOf({ 'com.example/alpha': {}, 'com.example/beta': {} });
    const skep = await commandUnderTest({ catalogue, supervisor: 'none' });
    expect(await offered(skep, 'run', 'al')).toEqual(['alpha']);
    expect(await offered(skep, 'registry', 'info', 'com')).toEqual(['com.example/alpha', 'com.example/beta']);
    expect(await skep.output('complete -- run al')).toBe('alpha\tServes com.example/alpha\n');
  });

  test('offers flags and the values that they take today', async () => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(await offered(skep, 'run', '--transport', '')).toEqual(['stdio', 'streamable-http', 'sse']);
    expect(await offered(skep, 'list', '--format=m')).toEqual([
      '--format=mcpservers',
      '--format=mistral-vibe',
    ]);
    expect(await offered(skep, 'export', '--format', '')).toEqual(['json', 'k8s', 'seatbelt']);
    expect(await offered(skep, 'run', '--permission-profile', '')).toEqual(['none', 'network']);
    expect(await offered(skep, 'run', '--remote-auth-ca')).toEqual(['--remote-auth-callback-port']);
  });

  test('offers clients, then workloads', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name cups');
    expect(await offered(skep, 'connect', 'cu')).toEqual(['cursor']);
    expect(await offered(skep, 'disconnect', 'cursor', 'cu')).toEqual(['cups']);
    expect(await offered(skep, 'client', 'register', 'vscode')).toEqual([
      'vscode',
      'vscode-insider',
      'vscode-server',
    ]);
  });

  test('offers what groups, labels, profiles, switches and keys of the configuration can be', async () => {
    const skep = await commandUnderTest();
    await skep.output('group create team');
    await skep.output('run fake:1 --name a1 --group team -l tier=one -l team=core');
    for (const command of ['run', 'list', 'stop', 'start', 'rm']) {
      expect(await offered(skep, command, '--group', '')).toEqual(['default', 'team']);
      expect(await offered(skep, command, '-l', 't')).toEqual(['team=core', 'tier=one']);
      expect(await offered(skep, command, '--label=ti')).toEqual(['--label=tier=one']);
    }
    expect(await offered(skep, 'group', 'rm', '')).toEqual(['default', 'team']);
    expect(await offered(skep, 'run', '--permission-profile', 'n')).toEqual(['none', 'network']);
    // A file, which the shell completes.
    expect(await offered(skep, 'run', '--permission-profile', './p')).toEqual([]);
    expect(await offered(skep, 'run', '--runtime', '')).toEqual(['docker', 'kubernetes', 'sandbox']);
    expect(await offered(skep, 'run', '--ignore-globally=')).toEqual([
      '--ignore-globally=true',
      '--ignore-globally=false',
    ]);
    expect(await offered(skep, 'config', 'get', 'ca')).toEqual(['ca_certificate_path']);
    expect(await offered(skep, 'config', 'set', 'allow_private_registry_ip', '')).toEqual(['true', 'false']);
  });

  test('asks neither supervisor nor engine, and leaves no trace', async () => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    skep.runtime.unreachable = true;
    expect(await offered(skep, 'st')).toEqual(['stop', 'start', 'status']);
    expect(await offered(skep, 'stop', '')).toEqual([]);
    skep.runtime.unreachable = false;
    expect(await skep.left()).toEqual({ saved: [], statuses: [], workloads: [] });
  });

  test('offers nothing where nothing is to be completed', async () => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(await offered(skep, 'nope', '')).toEqual([]);
    expect(await offered(skep, 'run', 'fake:1', '--', '')).toEqual([]);
    expect(await offered(skep, 'version', '')).toEqual([]);
    expect(await skep.output('complete')).toContain('run\t');
  });
});
