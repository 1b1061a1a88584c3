import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT } from '../command-under-test.fixture.ts';

const RUN = 'run fake:1 --name a1 --transport stdio';
const cedar = (policy: string): object => ({
  version: '1.0',
  type: 'cedarv1',
  cedar: { policies: [policy] },
});
const GOOD = cedar('permit(principal, action, resource == Tool::"look");');
const YAML = 'version: 1.0\ntype: cedarv1\ncedar:\n  policies:\n    - permit(principal, action, resource);\n';
const FILES = {
  'good.json': GOOD,
  good: JSON.stringify(GOOD),
  'good.yaml': YAML,
  'good.yml': YAML,
  'broken.json': '{"version":',
  'twice.json': '{"version":"1.0","version":"1.0"}',
  'broken.yaml': 'a: [',
  'twice.yaml': 'version: 1.0\nversion: 1.0\n',
  'list.json': [],
  'other.toml': '',
  'syntax.json': cedar('permit(principal, action);'),
  'empty.json': {},
};

describe('who may use what', () => {
  test.each([
    ['--authz-config=', '--authz-config is empty'],
    ['--authz-config nowhere.json', 'authorization configuration "WORK/nowhere.json" does not exist'],
    ['--authz-config broken.json', 'broken.json" is not valid JSON'],
    ['--authz-config twice.json', 'twice.json": has "version" twice'],
    ['--authz-config broken.yaml', 'broken.yaml": line 1: neither JSON nor YAML'],
    ['--authz-config twice.yaml', 'twice.yaml": line 2: a key is there twice'],
    ['--authz-config list.json', 'list.json": must be an object'],
    ['--authz-config other.toml', 'other.toml": must be an object'],
    ['--authz-config syntax.json', 'syntax.json": policy 0: '],
    ['--authz-config empty.json', 'empty.json": "version" is missing'],
  ])('is refused as %s, and nothing is made', async (flags, message) => {
    const skep = await commandUnderTest({ files: FILES });
    expect(await skep.refusal(`${RUN} ${flags}`)).toContain(message);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test.each(['good.json', 'good', 'good.yaml', 'good.yml'])('is read from %s', async (file) => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output(`${RUN} --authz-config ${file}`);
    const saved: unknown = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8'));
    expect(saved).toMatchObject({
      authz_config: { type: 'cedarv1' },
      authz_config_path: join(skep.cwd, file),
    });
  });

  test('is saved with the workload, exported without the path, and imported again', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output(`${RUN} --authz-config good.json`);
    await skep.output('export a1 out.json');
    const exported = JSON.parse(await readFile(join(skep.cwd, 'out.json'), 'utf8')) as object;
    expect(exported).toMatchObject({ authz_config: GOOD });
    expect(exported).not.toHaveProperty('authz_config_path');
    await skep.output('rm a1');
    await skep.output('run --from-config out.json');
    await skep.output('export a1 again.json');
    expect(JSON.parse(await readFile(join(skep.cwd, 'again.json'), 'utf8'))).toEqual(exported);
  });

  test('is taken from an imported file: its content, its step, or the file that it names', async () => {
    const base = { name: 'a1', image: 'fake:1', transport: 'stdio' };
    const step = (parameters: object) => ({ middleware_configs: [{ type: 'authorization', parameters }] });
    const skep = await commandUnderTest({
      files: {
        'policies.json': GOOD,
        'content.json': { ...base, authz_config: GOOD, authz_config_path: '/nowhere.json' },
        'step.json': { ...base, ...step({ config_data: GOOD, config_path: '/nowhere.json' }) },
        'path.json': { ...base, ...step({ config_path: 'policies.json' }) },
        'wrong.json': { ...base, authz_config: cedar('permit') },
        'gone.json': { ...base, authz_config_path: 'nowhere.json' },
      },
    });
    expect(await skep.refusal('run --from-config wrong.json')).toContain('"authz_config": policy 0: ');
    expect(await skep.refusal('run --from-config gone.json')).toContain('nowhere.json" does not exist');
    for (const file of ['content', 'step', 'path']) {
      await skep.output(`run --from-config ${file}.json`);
      const saved: unknown = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8'));
      expect(saved).toMatchObject({ authz_config: GOOD });
      expect(saved).not.toHaveProperty('authz_config_path');
      await skep.output('rm a1');
    }
  });
});

test('a start reads the file again, and fails where that cannot be understood', async () => {
  const skep = await commandUnderTest({ files: FILES });
  await skep.output(`${RUN} --authz-config good.json`);
  await skep.output('stop a1');
  await writeFile(join(skep.cwd, 'good.json'), '{"version":');
  expect(await skep.refusal('start a1')).toContain('good.json" is not valid JSON');
});
