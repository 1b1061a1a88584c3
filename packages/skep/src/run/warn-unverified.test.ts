import { expect, test } from 'vitest';
import { warnUnverified } from './warn-unverified.ts';

test('that nobody verified where an image comes from is said, and nothing of packages', () => {
  const said: string[] = [];
  const terminal = { err: (text: string) => void said.push(text) };
  warnUnverified({ kind: 'package', ecosystem: 'npm', name: 'x' }, terminal);
  warnUnverified({ kind: 'image', reference: 'org/x:1' }, terminal);
  expect(said).toEqual([
    'Warning: where the image "org/x:1" comes from is not verified, which is not available yet\n',
  ]);
});
