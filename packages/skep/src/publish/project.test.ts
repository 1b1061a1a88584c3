import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { officialFaults } from '@skep/core/catalog/official-schema.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { firstDocument } from './first-document.ts';
import { readProject } from './project.ts';

let folder: string;
beforeEach(async () => void (folder = await mkdtemp(join(tmpdir(), 'skep-project-'))));
afterEach(() => rm(folder, { recursive: true }));

const write = (file: string, content: string | object): Promise<void> =>
  writeFile(join(folder, file), typeof content === 'string' ? content : JSON.stringify(content));

const NPM = {
  name: '@acme/weather',
  version: '1.2.0',
  description: 'Forecasts',
  homepage: 'https://acme.example/weather/',
  repository: { type: 'git', url: 'git+https://github.com/acme/tools.git', directory: 'packages/weather' },
};

const PYTHON = `[project]
name = "weather_mcp"
version = "0.3.0"
description = "Forecasts"
[project.urls]
"Source Code" = "https://gitlab.com/acme/weather"
Documentation = "https://docs.acme.example"
`;

const GO = '// comment\nmodule github.com/acme/tools/cmd/weather/v2\n\ngo 1.24\n';

describe('a first document', () => {
  test.each<[file: string, content: string | object, document: object, notes: number]>([
    [
      'package.json',
      NPM,
      {
        name: 'io.github.acme/weather',
        description: 'Forecasts',
        version: '1.2.0',
        websiteUrl: 'https://acme.example/weather',
        repository: { url: 'https://github.com/acme/tools', source: 'github', subfolder: 'packages/weather' },
        packages: [
          {
            registryType: 'npm',
            identifier: '@acme/weather',
            version: '1.2.0',
            transport: { type: 'stdio' },
          },
        ],
      },
      0,
    ],
    [
      'package.json',
      { ...NPM, mcpName: 'com.acme/weather', repository: 'github:acme/weather', homepage: undefined },
      {
        name: 'com.acme/weather',
        description: 'Forecasts',
        version: '1.2.0',
        repository: { url: 'https://github.com/acme/weather', source: 'github' },
        packages: [expect.objectContaining({ identifier: '@acme/weather' })],
      },
      0,
    ],
    [
      'pyproject.toml',
      PYTHON,
      {
        name: 'io.gitlab.acme/weather_mcp',
        description: 'Forecasts',
        version: '0.3.0',
        websiteUrl: 'https://docs.acme.example',
        repository: { url: 'https://gitlab.com/acme/weather', source: 'gitlab' },
        packages: [
          { registryType: 'pypi', identifier: 'weather_mcp', version: '0.3.0', transport: { type: 'stdio' } },
        ],
      },
      0,
    ],
    [
      'go.mod',
      GO,
      {
        name: 'io.github.acme/weather',
        description: 'The MCP server weather',
        version: '0.1.0',
        repository: { url: 'https://github.com/acme/tools', source: 'github', subfolder: 'cmd/weather' },
      },
      3,
    ],
  ])('of %s is valid, and holds what is known', async (file, content, document, notes) => {
    await write(file, content);
    const first = firstDocument(await readProject(folder, undefined), undefined);
    expect(first.document).toEqual({ $schema: expect.stringContaining('server.schema.json'), ...document });
    expect(officialFaults(first.document)).toEqual([]);
    expect(first.notes).toHaveLength(notes);
  });

  test.each([
    ['ghcr.io/acme/weather:1.2.0', 'io.github.acme/weather', '1.2.0'],
    ['ghcr.io/acme/weather:v2', 'io.github.acme/weather', '2'],
    [`ghcr.io/acme/weather@sha256:${'a'.repeat(64)}`, 'io.github.acme/weather', '0.1.0'],
  ])('of the image %s is called %s, version %s', async (image, name, version) => {
    const { document } = firstDocument(await readProject(folder, image), undefined);
    expect(document).toMatchObject({ name, version, packages: [{ registryType: 'oci', identifier: image }] });
    expect(officialFaults(document)).toEqual([]);
  });

  test('takes a name that is given, and cuts a long description in whole characters', async () => {
    await write('package.json', { name: 'x', version: '1', description: '🐝'.repeat(200) });
    const { document, notes } = firstDocument(await readProject(folder, undefined), 'io.acme/x');
    expect(document).toMatchObject({ name: 'io.acme/x', description: `${'🐝'.repeat(99)}…` });
    expect(officialFaults(document)).toEqual([]);
    expect(notes).toEqual([expect.stringContaining('is cut')]);
  });

  test.each<[why: string, url: unknown]>([
    ['a login', 'https://user:secret@git.example/acme/weather.git'],
    ['an address of ssh', 'git@git.example:acme/weather.git'],
  ])('shows no login of %s', async (_, url) => {
    await write('package.json', { ...NPM, repository: url });
    const { document } = firstDocument(await readProject(folder, undefined), undefined);
    expect(document).toMatchObject({
      name: 'example.git/weather',
      repository: { url: 'https://git.example/acme/weather', source: 'git' },
    });
  });
});

describe('a project', () => {
  test.each<
    [why: string, files: Readonly<Record<string, string | object>>, named: string | undefined, said: RegExp]
  >([
    ['is not there', {}, undefined, /no project here/],
    ['is several', { 'package.json': NPM, 'go.mod': GO }, undefined, /package\.json, go\.mod/],
    ['is no JSON', { 'package.json': '{' }, undefined, /"package\.json" cannot be used/],
    ['has no name', { 'package.json': {} }, undefined, /no name/],
    ['is no TOML', { 'pyproject.toml': '[' }, undefined, /no TOML/],
    ['has no [project]', { 'pyproject.toml': '[tool.x]\n' }, undefined, /\[project\]/],
    ['names no module', { 'go.mod': 'go 1.24\n' }, undefined, /no module/],
    ['is neither file nor image', {}, 'no such thing', /neither a manifest nor an image/],
    ['is a bare word', {}, 'weather', /neither a manifest nor an image/],
  ])('that %s is refused', async (_, files, named, said) => {
    for (const [file, content] of Object.entries(files)) await write(file, content);
    await expect(readProject(folder, named)).rejects.toMatchObject({
      code: 'publish/no-project',
      message: expect.stringMatching(said),
    });
  });

  test('of several is the one that is named', async () => {
    await write('package.json', NPM);
    await write('go.mod', GO);
    expect((await readProject(folder, './go.mod')).source).toBe('./go.mod');
  });

  test('that does not tell its name asks for one', async () => {
    await write('package.json', { name: 'x' });
    const project = await readProject(folder, undefined);
    expect(() => firstDocument(project, undefined)).toThrow(
      expect.objectContaining({
        code: 'usage/missing-argument',
        hint: expect.stringContaining('--name io.'),
      }),
    );
  });
});
