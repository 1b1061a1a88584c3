import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { packageHome, treeProgram } from './package-trees.ts';
import { dropTreeProgram, writeTreeProgram } from './tree-program.ts';

async function directory(): Promise<string> {
  const made = await mkdtemp(path.join(tmpdir(), 'skep-program-'));
  onTestFinished(() => rm(made, { recursive: true }));
  return made;
}

const PROGRAM = { command: ['/app/bin/x'], env: { A: 'b' }, needs: ['/usr'] };

test('a tree starts as was written down, in place of what a package has put there', async () => {
  const tree = await directory();
  const outside = path.join(tree, 'outside');
  await writeFile(outside, 'kept');
  await symlink(outside, path.join(tree, 'skep.json'));
  const program = { ...PROGRAM, needs: ['/usr/bin'] };
  await writeTreeProgram(tree, program);
  expect(await treeProgram(tree)).toEqual(program);
  expect(await packageHome(tree)).toBeUndefined();
  expect(await readFile(outside, 'utf8')).toBe('kept');
});

test('a tree of npm starts what npm installed, whatever a package has put beside', async () => {
  const tree = await directory();
  await mkdir(path.join(tree, 'node_modules/x'), { recursive: true });
  await writeFile(path.join(tree, 'package.json'), '{"skep":{"package":"x"}}');
  await writeFile(path.join(tree, 'node_modules/x/package.json'), '{"bin":"./x.js"}');
  await mkdir(path.join(tree, 'skep.json'));
  await dropTreeProgram(tree);
  expect(await treeProgram(tree)).toEqual({
    command: ['/skep/bin/node', '/app/node_modules/x/x.js'],
    env: {},
    needs: [],
  });
});

test('a tree whose Python is gone says so', async () => {
  const tree = await directory();
  await writeTreeProgram(tree, { ...PROGRAM, needs: ['/usr/bin/python3.0'] });
  await expect(treeProgram(tree)).rejects.toMatchObject({
    code: 'runtime/start-failed',
    message: 'the package was fetched for "/usr/bin/python3.0", which is not on this machine any more',
  });
});

test.each([
  [{ ...PROGRAM, needs: ['/home/u'] }],
  [{ ...PROGRAM, needs: ['/usr/../home/u'] }],
  [{ ...PROGRAM, command: [] }],
  [{ ...PROGRAM, env: { A: 1 } }],
  [[]],
])('%j starts nothing', async (program) => {
  const tree = await directory();
  await writeFile(path.join(tree, 'skep.json'), JSON.stringify(program));
  await expect(treeProgram(tree)).rejects.toMatchObject({ code: 'runtime/start-failed' });
});
