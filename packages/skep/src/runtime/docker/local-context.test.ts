import { mkdir, mkdtemp, readdir, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { scriptedEngine } from './engine.fixture.ts';
import { readLocalContext } from './local-context.ts';

const { signal } = new AbortController();

async function moduleWith(files: Readonly<Record<string, string>>): Promise<string> {
  const root = await mkdtemp(path.join(tmpdir(), 'skep-module-'));
  onTestFinished(() => rm(root, { recursive: true, force: true }));
  for (const [name, content] of Object.entries({ 'go.mod': 'module example.test/own\n', ...files })) {
    await mkdir(path.dirname(path.join(root, name)), { recursive: true });
    await writeFile(path.join(root, name), content);
  }
  return root;
}

test('takes the module of a directory without its history and what .dockerignore leaves out', async () => {
  const root = await moduleWith({
    '.dockerignore': '.env\nsecrets\n!secrets/shown\n',
    '.env': 'TOKEN=hush',
    '.git/config': 'hush',
    'secrets/key': 'hush',
    'secrets/shown': 'seen',
    'cmd/server/main.go': 'package main\n',
  });
  await symlink('/etc/passwd', path.join(root, 'outside'));
  const { target, parts } = await readLocalContext(path.join(root, 'cmd/server'), signal);
  expect(target).toBe('./cmd/server');
  expect(parts.map(({ name }) => name)).toEqual([
    '.dockerignore',
    'cmd',
    'cmd/server',
    'cmd/server/main.go',
    'go.mod',
    'outside',
    'secrets',
    'secrets/shown',
  ]);
  expect(parts.find(({ name }) => name === 'outside')).toEqual({
    kind: 'link',
    name: 'outside',
    target: '/etc/passwd',
  });
});

test('is another version when a source changes, and the same when only what is left out does', async () => {
  const root = await moduleWith({ '.dockerignore': 'notes\n', 'main.go': 'package main\n', notes: '1' });
  const versionOf = async (): Promise<string> => (await readLocalContext(root, signal)).version;
  const before = await versionOf();
  await writeFile(path.join(root, 'notes'), '2');
  expect(await versionOf()).toBe(before);
  await writeFile(path.join(root, 'main.go'), 'package main // other\n');
  expect(await versionOf()).not.toBe(before);
});

test('is sent to the engine as it was read, and nothing is written beside it', async () => {
  const root = await moduleWith({ 'main.go': 'package main\n' });
  const before = await readdir(root);
  const engine = await scriptedEngine({
    'GET /images/golang:1.26-alpine/json': { body: { Id: 'base', Config: {} } },
    'GET /images/json': { body: [] },
    'POST /build': { lines: [] },
  });
  const source = { kind: 'package', ecosystem: 'go', name: root, directory: root } as const;
  const { reference, version } = await engine.runtime.prepare({ source, addPackages: [], report: engine.report, signal }); // prettier-ignore
  expect(version).toMatch(/^src-[0-9a-f]{16}$/);
  expect(reference).toContain(path.basename(root).toLowerCase());
  const context = String(engine.asked.find(({ what }) => what === 'POST /build')?.body);
  expect(context).toContain('source/main.go');
  expect(context).toContain('RUN ["/bin/sh","/skep/fetch.sh","build","."]');
  expect(context).not.toContain(root);
  expect(await readdir(root)).toEqual(before);
});

test('is refused where it is too large to be sent, with what to do, and taken without what is left out', async () => {
  const root = await moduleWith({ 'main.go': 'package main\n', 'data/large': '' });
  await truncate(path.join(root, 'data/large'), 256 * 1024 * 1024);
  await expect(readLocalContext(root, signal)).rejects.toMatchObject({
    code: 'runtime/build-failed',
    message: `the module at "${root}" is larger than 256 MiB`,
    hint: expect.stringContaining('.dockerignore'),
  });
  await writeFile(path.join(root, '.dockerignore'), 'data\n');
  const { parts } = await readLocalContext(root, signal);
  expect(parts.map(({ name }) => name)).toEqual(['.dockerignore', 'go.mod', 'main.go']);
});
