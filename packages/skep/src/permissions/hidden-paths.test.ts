import { execFileSync } from 'node:child_process';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { findHidden, type HiddenPath } from './hidden-paths.ts';

let home: string;
let file: string;
let project: string;
beforeEach(async () => {
  home = await mkdtemp(path.join(tmpdir(), 'skep-hidden-'));
  [file, project] = [path.join(home, 'skepignore'), path.join(home, 'project')];
  await put('project/.env', 'project/src/.env', 'project/src/a.ts', 'project/keys/a.pem', 'project/keys/b');
});
afterEach(() => rm(home, { recursive: true }));

async function put(...files: string[]): Promise<void> {
  for (const one of files) {
    await mkdir(path.dirname(path.join(home, one)), { recursive: true });
    await writeFile(path.join(home, one), '');
  }
}

interface Looking {
  readonly globally?: boolean;
  readonly readOnly?: boolean;
  readonly source?: string;
}

const look = ({ globally = true, readOnly = true, source = project }: Looking = {}) =>
  findHidden({ file, globally, mounts: [{ source, target: '/data', readOnly }] });

const hidden = async (looking?: Looking): Promise<Record<string, HiddenPath['shows']>> =>
  Object.fromEntries((await look(looking)).map(({ target, shows }) => [target, shows]));

test('nothing is hidden without a pattern, whatever is mounted', async () => {
  expect(await look()).toEqual([]);
  await writeFile(file, '\n# only a comment\r\n');
  expect(await look()).toEqual([]);
});

test('what the user’s file names is hidden at every depth, a directory with all that is in it', async () => {
  await writeFile(file, '.env\nkeys/\n');
  expect(await hidden()).toEqual({
    '/data/.env': 'empty-file',
    '/data/src/.env': 'empty-file',
    '/data/keys': 'empty-directory',
  });
});

test('the user’s file is not heeded where the person says so', async () => {
  await writeFile(file, '.env\n');
  expect(await look({ globally: false })).toEqual([]);
});

test('a mounted file hides nothing', async () => {
  await writeFile(file, '.env\n');
  expect(await look({ source: path.join(project, '.env') })).toEqual([]);
});

test('a source that is not on this machine is refused while there is something to hide', async () => {
  expect(await look({ source: '/nowhere/at/all' })).toEqual([]);
  await writeFile(file, '.env\n');
  await expect(look({ source: '/nowhere/at/all' })).rejects.toMatchObject({
    code: 'run/cannot-hide',
    hint: expect.stringContaining('--ignore-globally=false'),
  });
});

describe.each(['.skepignore', 'skepignore'])('a %s in the mounted directory', (name) => {
  test('hides what it names, whether the user’s file is heeded or not', async () => {
    await writeFile(path.join(project, name), '/keys/*.pem\n');
    expect(await hidden({ globally: false })).toEqual({ '/data/keys/a.pem': 'empty-file' });
    await writeFile(file, '/src/.env\n');
    expect(Object.keys(await hidden())).toEqual(['/data/keys/a.pem', '/data/src/.env']);
  });

  test('cannot be changed by who may write the directory', async () => {
    await writeFile(path.join(project, name), '');
    expect(await hidden({ readOnly: false })).toEqual({ [`/data/${name}`]: 'itself' });
    expect(await hidden({ readOnly: true })).toEqual({});
  });

  test('takes back what it hides itself, and nothing of what the user’s file hides', async () => {
    await writeFile(file, '.env\n');
    await writeFile(path.join(project, name), '!.env\n*.pem\n!a.pem\n');
    expect(Object.keys(await hidden())).toEqual(['/data/.env', '/data/src/.env']);
  });

  test('that is a link is not believed', async () => {
    await put('elsewhere');
    await symlink(path.join(home, 'elsewhere'), path.join(project, name));
    await expect(look()).rejects.toMatchObject({ code: 'run/cannot-hide' });
  });

  test('that is too large for an ignore file is refused', async () => {
    await writeFile(path.join(project, name), 'x\n'.repeat(40_000));
    await expect(look()).rejects.toMatchObject({ code: 'file/too-large' });
  });
});

describe('a link with a hidden name', () => {
  test('hides what it leads to within the mounts, and nothing elsewhere', async () => {
    await writeFile(file, '.env\n');
    await put('other/place');
    await rm(path.join(project, '.env'));
    await rm(path.join(project, 'src/.env'));
    await symlink('keys/a.pem', path.join(project, '.env'));
    await symlink(path.join(home, 'other/place'), path.join(project, 'src/.env'));
    expect(await hidden()).toEqual({ '/data/keys/a.pem': 'empty-file' });
  });

  test('to the whole mount is refused, and one to nothing is nothing', async () => {
    await writeFile(file, 'self\nnowhere\n');
    await symlink('nothing', path.join(project, 'nowhere'));
    expect(await hidden()).toEqual({});
    await symlink('.', path.join(project, 'self'));
    await expect(look()).rejects.toMatchObject({ code: 'run/cannot-hide' });
  });
});

test.skipIf(process.getuid?.() === 0)('a directory that cannot be looked into is hidden whole', async () => {
  await writeFile(file, '.env\n');
  await chmod(path.join(project, 'keys'), 0o000);
  try {
    expect(await hidden()).toMatchObject({ '/data/keys': 'empty-directory' });
  } finally {
    await chmod(path.join(project, 'keys'), 0o700);
  }
});

test('what lies in a directory that cannot be named is not left visible: it is refused', async () => {
  await writeFile(file, '*.pem\n');
  const unnamed = Buffer.from(`${project}/b\xfcro`, 'latin1');
  await mkdir(unnamed);
  await writeFile(Buffer.concat([unnamed, Buffer.from('/key.pem')]), '');
  await expect(look()).rejects.toMatchObject({
    code: 'run/cannot-hide',
    message: expect.stringContaining('its name is no valid text'),
  });
});

test('directories that are nested deeper than a path can be are refused by name', async () => {
  await writeFile(file, '*.pem\n');
  const script =
    'name=$(printf %0200d 0); for one in $(seq 30); do mkdir $name && cd -P $name || exit 1; done';
  execFileSync('sh', ['-c', script], { cwd: project });
  try {
    await expect(look()).rejects.toMatchObject({
      code: 'run/cannot-hide',
      message: expect.stringContaining('ENAMETOOLONG'),
    });
  } finally {
    execFileSync('rm', ['-rf', '--', project]);
  }
});

test('patterns and names that are made to take long are refused while others have their turn', async () => {
  const names = Array.from({ length: 40 }, (_one, at) => `project/many/${'a'.repeat(240)}${at}`);
  await put(...names);
  await writeFile(file, `*${'a'.repeat(120)}b\n`.repeat(200));
  let turns = 0;
  const others = setInterval(() => (turns += 1), 1);
  await expect(look()).rejects.toMatchObject({
    code: 'run/cannot-hide',
    message: expect.stringContaining('too much to look through'),
  });
  clearInterval(others);
  expect(turns).toBeGreaterThan(1);
});

test('a pattern cannot make a start look for minutes', async () => {
  const names = Array.from({ length: 700 }, (_one, at) => `project/many/${at}`);
  await put(...names);
  await writeFile(file, 'x\n'.repeat(30_000));
  await expect(look()).rejects.toMatchObject({
    code: 'run/cannot-hide',
    message: expect.stringContaining('too much to look through'),
  });
});
