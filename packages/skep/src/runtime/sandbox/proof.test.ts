import { chmod, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { recallProof, rememberProof, subjectOf } from './proof.ts';

let directory: string;
let file: string;
const proof = { subject: 'this', version: '0.8.0', ownNetwork: true };

beforeEach(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'skep-proof-'));
  file = path.join(directory, 'proof.json');
});
afterEach(() => rm(directory, { recursive: true }));

test('recalls what was proved of the same sandbox, and of no other', async () => {
  await rememberProof(file, proof);
  expect(recallProof(file, 'this')).toEqual(proof);
  expect(recallProof(file, 'that')).toBeUndefined();
});

test('believes no proof that somebody else could have written', async () => {
  expect(recallProof(file, 'this')).toBeUndefined();
  await rememberProof(file, proof);
  await symlink(file, path.join(directory, 'link'));
  expect(recallProof(path.join(directory, 'link'), 'this')).toBeUndefined();
  await chmod(file, 0o622);
  expect(recallProof(file, 'this')).toBeUndefined();
});

test('takes a damaged proof for none, and does without one where nothing can be written', async () => {
  for (const text of ['', '{', '{"subject":"this"}', 'null']) {
    await writeFile(file, text, { mode: 0o600 });
    expect(recallProof(file, 'this')).toBeUndefined();
  }
  await writeFile(path.join(directory, 'plain'), '');
  await rememberProof(path.join(directory, 'plain', 'proof.json'), proof);
});

test('proves anew when a program or how it is called has changed', async () => {
  const program = path.join(directory, 'bwrap');
  await writeFile(program, 'one');
  const first = subjectOf([program], ['--unshare-all']);
  expect(subjectOf([program], ['--unshare-all'])).toBe(first);
  expect(subjectOf([program], ['--unshare-net'])).not.toBe(first);
  expect(subjectOf([program], ['--unshare-', 'all'])).not.toBe(first);
  await utimes(program, 1, 1);
  const touched = subjectOf([program], ['--unshare-all']);
  expect(touched).not.toBe(first);
  await rm(program);
  await writeFile(program, 'one');
  await utimes(program, 1, 1);
  expect(subjectOf([program], ['--unshare-all'])).not.toBe(touched);
});
