import { describe, expect, test } from 'vitest';
import type { Source } from '../runtime/runtime.ts';
import { originOf, unusedBuild } from './preparation.ts';

const image: Source = { kind: 'image', reference: 'org/x:1' };
const npm: Source = { kind: 'package', ecosystem: 'npm', name: 'x' };
const engine = { kind: 'docker', runsImages: true } as const;
const sandbox = { kind: 'sandbox', runsImages: false } as const;

test('that build flags have no effect in the sandbox or on an image is said', () => {
  const inSandbox = unusedBuild({ runtimeImage: 'x', runtimeAddPackage: ['jq'] }, npm, sandbox);
  expect(inSandbox).toEqual([
    'Warning: --runtime-image, --runtime-add-package have no effect in the sandbox\n',
  ]);
  expect(unusedBuild({ rebuild: true }, image, engine)).toEqual([
    'Warning: --rebuild has no effect on an image\n',
  ]);
});

test('nothing is said of build flags that count, or that are not given', () => {
  expect(unusedBuild({ runtimeImage: 'x' }, npm, engine)).toEqual([]);
  expect(unusedBuild({ rebuild: false }, npm, sandbox)).toEqual([]);
});

describe('the origin', () => {
  const app = { sigstoreTrustedRoot: undefined };
  const expected = { repository_uri: 'https://git.example/x' };

  test('of an image is verified where a catalogue says who signs it', () => {
    expect(originOf(image, expected, 'warn', app)).toEqual({
      verification: { expected, required: false },
      warnings: [],
    });
    expect(originOf(image, expected, 'enabled', { sigstoreTrustedRoot: '/root.json' })).toEqual({
      verification: { expected, required: true, trustedRoot: '/root.json' },
      warnings: [],
    });
  });

  test('that nobody states is told of images, and nothing of packages', () => {
    expect(originOf(npm, undefined, 'warn', app)).toEqual({ warnings: [] });
    expect(originOf(image, undefined, 'warn', app)).toEqual({
      warnings: [
        'Warning: where the image "org/x:1" comes from is not verified: no catalogue says who signs it\n',
      ],
    });
  });

  test.each([
    [image, 'the image "org/x:1"'],
    [npm, 'npx://x'],
  ])('that nobody states is refused where it is required', (source, what) => {
    const refused = expect.objectContaining({
      code: 'runtime/unverified',
      message: `provenance server information not set: no catalogue says who signs ${what}`,
    });
    expect(() => originOf(source, undefined, 'enabled', app)).toThrow(refused);
  });

  test('is of no interest where verification is disabled', () => {
    expect(originOf(image, expected, 'disabled', app)).toEqual({ warnings: [] });
  });
});
