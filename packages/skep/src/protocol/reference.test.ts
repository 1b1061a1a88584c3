import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { anyText } from '@skep/core/json/any-text.fixture.ts';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import {
  checkPackageSource,
  isPackageReference,
  packageReference,
  parsePackageReference,
  type PackageSource,
} from './reference.ts';

describe('parsePackageReference', () => {
  test.each([
    ['npx://server', 'npm', 'server', undefined],
    ['npx://@scope/server', 'npm', '@scope/server', undefined],
    ['npx://@scope/server@1.2.3', 'npm', '@scope/server', '1.2.3'],
    ['npx://server@next', 'npm', 'server', 'next'],
    ['npx://server@latest', 'npm', 'server', undefined],
    ['npx://server@^2.0', 'npm', 'server', '^2.0'],
    ['uvx://mcp-server-git@2025.1.14', 'pypi', 'mcp-server-git', '2025.1.14'],
    ['uvx://Name_with.dots@latest', 'pypi', 'Name_with.dots', undefined],
    ['go://example.org/team/server/cmd/x@v1.0.0', 'go', 'example.org/team/server/cmd/x', 'v1.0.0'],
  ])('reads %s', (text, ecosystem, name, version) => {
    const expected = { kind: 'package', ecosystem, name, ...(version === undefined ? {} : { version }) };
    expect(parsePackageReference(text)).toEqual(expected);
  });

  test.each([
    'npx://',
    'npx://@',
    'npx://@scope',
    'npx://@scope/',
    'npx://Upper',
    'npx://a b',
    'npx://a;rm -rf /',
    'npx://$(id)',
    'npx://a`id`',
    'npx://--prefix',
    'npx://../x',
    'npx://a@',
    'npx://a@1 2',
    'npx://a@--global',
    'npx://a@file:/etc',
    'npx://a@1\nRUN id',
    'npx://https://x.test/y',
    'uvx://-x',
    'uvx://a@>=1',
    'uvx://a[extra]',
    'uvx://a@1;id',
    'uvx://--index-url=http://x.test/',
    'go://-toolexec=x.test/y',
    'go://nohost/x',
    'go://./x',
    'go:///x',
    'go://..',
    'go://x.test/../y',
    'go://x.test/y@v1/z',
    'ftp://x',
    'plain',
    '__proto__://x',
    'constructor://x',
  ])('refuses %j with target/invalid-package', (text) => {
    expect(() => parsePackageReference(text)).toThrow(
      expect.objectContaining({ code: 'target/invalid-package', message: expect.stringContaining(text) }),
    );
  });

  test.each([
    ['go://./server', '/home/ann/notes/server'],
    ['go://../other/cmd/x', '/home/ann/other/cmd/x'],
    ['go://.', '/home/ann/notes'],
    ['go://..', '/home/ann'],
    ['go:///srv/a b@c/', '/srv/a b@c'],
  ])('reads %s as a project of this machine where a person names it', (text, directory) => {
    const source = parsePackageReference(text, '/home/ann/notes');
    expect(source).toEqual({ kind: 'package', ecosystem: 'go', name: directory, directory });
    expect(checkPackageSource(source)).toEqual(source);
    expect(parsePackageReference(packageReference(source), '/')).toEqual(source);
  });

  test.each([
    'go://./...',
    'go://./cmd/...',
    'go://./a\nb',
    `go://./${'x'.repeat(5000)}`,
    'go://.../x',
    'npx://./x',
  ])('refuses %j also where a person names it', (text) => {
    expect(() => parsePackageReference(text, '/home/ann')).toThrow(
      expect.objectContaining({ code: 'target/invalid-package' }),
    );
  });

  test.each<Partial<PackageSource>>([
    { name: '/srv/x' },
    { name: '/srv/x', directory: '/etc' },
    { name: '/srv/../x', directory: '/srv/../x' },
    { name: 'example.org/x', directory: '/srv/x' },
    { name: '/srv/x', directory: '/srv/x', ecosystem: 'npm' },
  ])('takes no source %j that names a directory otherwise', (part) => {
    expect(() => checkPackageSource({ kind: 'package', ecosystem: 'go', name: '', ...part })).toThrow(
      expect.objectContaining({ code: 'target/invalid-package' }),
    );
  });

  test('never lets shell, flag or path characters through, and what it reads prints back to the same source', () => {
    const text = fc.tuple(fc.constantFrom('npx', 'uvx', 'go'), anyText());
    fc.assert(
      fc.property(text, ([scheme, rest]) => {
        try {
          const source = parsePackageReference(`${scheme}://${rest}`);
          expect(source.name).toMatch(/^[A-Za-z0-9@~][A-Za-z0-9@/._~-]*$/);
          if (source.version !== undefined)
            expect(source.version).toMatch(/^[A-Za-z0-9~^][A-Za-z0-9.+_~^!-]*$/);
          expect(parsePackageReference(packageReference(source))).toEqual(source);
        } catch (error) {
          if (!hasCode(error, 'target/invalid-package')) throw error;
        }
      }),
    );
  });
});

test('isPackageReference looks at the scheme only', () => {
  expect(['npx://', 'uvx://x', 'go://x', 'npm://x', 'x'].map(isPackageReference)).toEqual([
    true,
    true,
    true,
    false,
    false,
  ]);
});
