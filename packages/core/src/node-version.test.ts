import { expect, test } from 'vitest';
import { nodeTooOld } from './node-version.ts';

test.each(['v24.0.0', 'v24.21.0', 'v100.1.0'])('%s is new enough', (version) => {
  expect(nodeTooOld('skep', version)).toBeUndefined();
});

test.each(['v20.20.2', 'v9.0.0', 'v23.11.1', ''])(
  '%j is refused with one line that says what to install',
  (version) => {
    expect(nodeTooOld('skep', version)).toBe(`skep needs Node 24 or newer, and this is ${version}\n`);
  },
);
