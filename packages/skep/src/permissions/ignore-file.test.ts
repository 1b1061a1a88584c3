import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkNothingToHide } from './ignore-file.ts';

let home: string;
let file: string;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-ignore-'));
  file = join(home, 'skepignore');
  await mkdir(join(home, 'project'));
});
afterEach(() => rm(home, { recursive: true }));

const check = (source: string, globally = true): Promise<void> =>
  checkNothingToHide({
    file,
    globally,
    mounts: [{ source, target: '/x', readOnly: true }],
    override: 'say so',
  });

describe('the ignore file', () => {
  test('that names something keeps directories from being mounted', async () => {
    await writeFile(file, '# secrets\n.env\n');
    await expect(check(join(home, 'project'))).rejects.toMatchObject({
      code: 'usage/not-available',
      message: expect.stringContaining(file),
      hint: expect.stringContaining('say so'),
    });
  });
  test('has nothing to hide in a single file', async () => {
    await writeFile(file, '.env\n');
    await check(file);
  });
  test.each(['', '\n  \n', '# only a comment\r\n'])('without patterns hides nothing: %j', async (text) => {
    await writeFile(file, text);
    await check(join(home, 'project'));
  });
  test('that is not there hides nothing', async () => {
    await check(join(home, 'project'));
  });
});

describe('a .skepignore in the mounted directory', () => {
  test.each([true, false])(
    'keeps what it names from being shown (user’s file heeded: %s)',
    async (globally) => {
      const local = join(home, 'project/.skepignore');
      await writeFile(local, '.env\n');
      await expect(check(join(home, 'project'), globally)).rejects.toMatchObject({
        code: 'usage/not-available',
        message: expect.stringContaining(local),
        hint: expect.not.stringContaining('say so'),
      });
    },
  );
  test('without patterns hides nothing', async () => {
    await writeFile(join(home, 'project/.skepignore'), '# nothing yet\n');
    await check(join(home, 'project'));
  });
  test('is looked for in no file, and in nothing that is not there', async () => {
    await writeFile(join(home, 'project/.skepignore'), '.env\n');
    await check(join(home, 'project/.skepignore'));
    await check(join(home, 'nowhere'));
  });
});

test('the user’s file is not heeded where the person says so', async () => {
  await writeFile(file, '.env\n');
  await check(join(home, 'project'), false);
});
