import { execFileSync } from 'node:child_process';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyText } from '@skep/core/json/any-text.fixture.ts';
import { secretLines } from './secret-script.ts';

const value = anyText({ maxLength: 50 }).map((text) => text.replaceAll(/[\0\r\n]/g, ''));

test('a shell gets every value as it is, and runs nothing of it', () => {
  fc.assert(
    fc.property(fc.oneof(value, fc.constantFrom("'; id; '", '$(id)', '`id`', '\\', "'\\''")), (text) => {
      const lines = secretLines({ env: { GIVEN: text }, files: {}, hidden: [] });
      const got = execFileSync('/bin/sh', ['-c', 'eval "$0"; printf %s "$GIVEN"', lines], { env: {} });
      expect(got.toString()).toBe(Buffer.from(text).toString());
    }),
    { numRuns: 50 },
  );
});

test('login files are written where only memory is, whatever lines they have', () => {
  const lines = secretLines({ env: {}, files: { npmrc: "a='b'\nEOF\n$(id)" }, hidden: ['x'] });
  expect(lines).toContain(String.raw`printf '%s\n' 'a='\''b'\''`);
  expect(lines.match(/>\/[^ ;]+/g)?.every((target) => target.startsWith('>/run/skep-build/'))).toBe(true);
});
