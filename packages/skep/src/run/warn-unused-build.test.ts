import { expect, test } from 'vitest';
import type { RuntimeKind, Source } from '../runtime/runtime.ts';
import { warnUnusedBuild, type BuildWish } from './warn-unused-build.ts';

const image: Source = { kind: 'image', reference: 'org/x:1' };
const npm: Source = { kind: 'package', ecosystem: 'npm', name: 'x' };

function said(given: Partial<BuildWish['values']>, source: Source, runtimeKind: RuntimeKind): string {
  let text = '';
  const values = { runtimeImage: undefined, runtimeAddPackage: undefined, ...given };
  warnUnusedBuild({ values, source, runtimeKind }, { err: (line) => void (text += line) });
  return text;
}

test('that build flags have no effect in the sandbox or on an image is said', () => {
  const warning = 'Warning: --runtime-image and --runtime-add-package have no effect';
  expect(said({ runtimeImage: 'x' }, npm, 'sandbox')).toBe(`${warning} in the sandbox\n`);
  expect(said({ runtimeAddPackage: ['jq'] }, npm, 'sandbox')).toBe(`${warning} in the sandbox\n`);
  expect(said({ runtimeImage: 'x' }, image, 'docker')).toBe(`${warning} on an image\n`);
});

test('nothing is said of build flags that count, or that are not given', () => {
  expect(said({ runtimeImage: 'x' }, npm, 'docker')).toBe('');
  expect(said({}, npm, 'sandbox')).toBe('');
});
