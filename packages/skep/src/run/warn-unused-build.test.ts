import { expect, test } from 'vitest';
import type { RuntimeKind, Source } from '../runtime/runtime.ts';
import { warnUnusedBuild, type BuildWish } from './warn-unused-build.ts';

const image: Source = { kind: 'image', reference: 'org/x:1' };
const npm: Source = { kind: 'package', ecosystem: 'npm', name: 'x' };

test.each<[string, Partial<BuildWish['values']>, Source, RuntimeKind, string | undefined]>([
  ['a package in the sandbox', { runtimeImage: 'x' }, npm, 'sandbox', 'in the sandbox'],
  ['more packages in the sandbox', { runtimeAddPackage: ['jq'] }, npm, 'sandbox', 'in the sandbox'],
  ['an image', { runtimeImage: 'x' }, image, 'docker', 'on an image'],
  ['a package that is built', { runtimeImage: 'x' }, npm, 'docker', undefined],
  ['nothing', {}, npm, 'sandbox', undefined],
])('that build flags have no effect is said: %s', (_what, given, source, runtimeKind, expected) => {
  const said: string[] = [];
  const values = { runtimeImage: undefined, runtimeAddPackage: undefined, ...given };
  warnUnusedBuild({ values, source, runtimeKind }, { err: (text) => void said.push(text) });
  const line = `Warning: --runtime-image and --runtime-add-package have no effect ${expected}\n`;
  expect(said).toEqual(expected === undefined ? [] : [line]);
});
