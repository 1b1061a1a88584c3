import { expect, test } from 'vitest';
import type { Source } from '../runtime/runtime.ts';
import { unusedBuild, unverified } from './preparation.ts';

const image: Source = { kind: 'image', reference: 'org/x:1' };
const npm: Source = { kind: 'package', ecosystem: 'npm', name: 'x' };
const engine = { kind: 'docker', runsImages: true } as const;
const sandbox = { kind: 'sandbox', runsImages: false } as const;
const nothing = { runtimeImage: undefined, runtimeAddPackage: undefined };

test('that build flags have no effect in the sandbox or on an image is said', () => {
  const warning = 'Warning: --runtime-image and --runtime-add-package have no effect';
  const withImage = { ...nothing, runtimeImage: 'x' };
  const withPackage = { ...nothing, runtimeAddPackage: ['jq'] };
  expect(unusedBuild(withImage, npm, sandbox)).toEqual([`${warning} in the sandbox\n`]);
  expect(unusedBuild(withPackage, npm, sandbox)).toEqual([`${warning} in the sandbox\n`]);
  expect(unusedBuild(withImage, image, engine)).toEqual([`${warning} on an image\n`]);
});

test('nothing is said of build flags that count, or that are not given', () => {
  expect(unusedBuild({ ...nothing, runtimeImage: 'x' }, npm, engine)).toEqual([]);
  expect(unusedBuild(nothing, npm, sandbox)).toEqual([]);
});

test('that nobody verified where an image comes from is said, and nothing of packages', () => {
  expect(unverified(npm)).toEqual([]);
  expect(unverified(image)).toEqual([
    'Warning: where the image "org/x:1" comes from is not verified, which is not available yet\n',
  ]);
});
