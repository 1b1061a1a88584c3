import { createCipheriv, createHash } from 'node:crypto';
import { beforeAll, describe, expect, test } from 'vitest';
import { Seal } from './sealed-file.ts';

const seal = new Seal('correct horse');
const text = Buffer.from('{"secrets":{"a":"the value"}}');
let sealed: Buffer;
beforeAll(async () => {
  sealed = await seal.close(text);
});

/** As releases before this format wrote it. */
function old(password: string): Buffer {
  const nonce = Buffer.alloc(12, 7);
  const cipher = createCipheriv('aes-256-gcm', createHash('sha256').update(password).digest(), nonce);
  return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()]);
}

test('what is sealed says nothing of the text, and is opened with the password', async () => {
  expect(sealed.includes('the value')).toBe(false);
  expect(await new Seal('correct horse').open(sealed, 'f')).toEqual(text);
});

test('the same text is never sealed to the same bytes', async () => {
  const again = await seal.close(text, sealed);
  expect(again.subarray(-64).equals(sealed.subarray(-64))).toBe(false);
  expect(await seal.open(again, 'f')).toEqual(text);
});

test('another password is refused as wrong', async () => {
  await expect(new Seal('wrong').open(sealed, 'f')).rejects.toMatchObject({ code: 'secrets/wrong-password' });
});

describe('a changed byte', () => {
  test.each([
    ['of the text', 54],
    ['of the nonce', 44],
    ['of the tag', -1],
  ])('%s is found to be damage', async (_what, at) => {
    const changed = Buffer.from(sealed);
    changed[at < 0 ? changed.length + at : at] = (changed.at(at) ?? 0) ^ 1;
    await expect(seal.open(changed, 'f')).rejects.toMatchObject({ code: 'secrets/damaged' });
  });
  test('of the beginning opens nothing', async () => {
    for (const at of [0, 7, 8, 9, 11, 27]) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] ?? 0) ^ 1;
      await expect(seal.open(changed, 'f')).rejects.toMatchObject({
        code: /^secrets\/(?:damaged|wrong-password)$/,
      });
    }
  });
});

test('a file that ends too early is damaged', async () => {
  for (const length of [7, 8, 20, 53, 54, 60, sealed.length - 1]) {
    await expect(seal.open(sealed.subarray(0, length), 'f')).rejects.toMatchObject({
      code: 'secrets/damaged',
    });
  }
});

test('a file that would cost gigabytes to open is refused unopened', async () => {
  const costly = Buffer.from(sealed);
  costly[8] = 30;
  await expect(seal.open(costly, 'f')).rejects.toMatchObject({ code: 'secrets/damaged' });
});

test('a file of a later release is not taken for a damaged one', async () => {
  const later = Buffer.from(sealed);
  later[7] = 9;
  await expect(seal.open(later, 'f')).rejects.toThrow('was written by a later release');
});

describe('a file of the old format', () => {
  test('is opened, and sealed in the new one', async () => {
    expect(await seal.open(old('correct horse'), 'f')).toEqual(text);
    const renewed = await seal.close(text, old('correct horse'));
    expect(renewed.subarray(0, 7).toString()).toBe('SKEPSEC');
    expect(await seal.open(renewed, 'f')).toEqual(text);
  });
  test('is refused with another password', async () => {
    await expect(seal.open(old('other'), 'f')).rejects.toMatchObject({ code: 'secrets/wrong-password' });
  });
});
