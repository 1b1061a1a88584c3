import { CLAIM_LIMITS } from '@skep/auth/claims/claims.ts';
import { decodeEntry } from '@skep/core/catalog/entry.ts';
import { compactText } from '@skep/core/json/scan.ts';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deriveServer, type Derived } from './derive-entry.ts';
import type { ObjectKindName } from './object-kinds.ts';

const LIMITS = { claims: CLAIM_LIMITS, maxDocumentSize: 256 * 1024 };
const OWN = 'skep.dev/';
const ALIAS = 'toolhive.stacklok.dev/';
const NEEDED = {
  'registry-export': 'true',
  'registry-url': 'https://a.example/mcp',
  'registry-description': 'Serves a',
};

const under = (prefix: string, annotations: object): object =>
  Object.fromEntries(Object.entries(annotations).map(([key, value]) => [prefix + key, value as unknown]));

function derive(
  annotations: object,
  spec: unknown = {},
  kind: ObjectKindName = 'MCPServer',
): Derived | undefined {
  const metadata = { uid: 'u', annotations };
  return deriveServer({ kind, namespace: 'prod', name: 'a', metadata, spec }, LIMITS);
}

/** The document of an exported object with these annotations of ours. */
function documentOf(annotations: object, spec?: unknown, kind?: ObjectKindName): Record<string, unknown> {
  const derived = derive(under(OWN, { ...NEEDED, ...annotations }), spec, kind);
  if (derived === undefined || !('server' in derived)) throw new TypeError(JSON.stringify(derived));
  return JSON.parse(derived.server.json) as Record<string, unknown>;
}

const outcome = (derived: Derived | undefined): string =>
  derived === undefined ? 'not exported' : 'server' in derived ? derived.server.claims : derived.refusal;

describe('what asks to be shown', () => {
  test.each([
    [under(OWN, NEEDED), ''],
    [under(ALIAS, NEEDED), ''],
    [{ ...under(ALIAS, NEEDED), ...under(OWN, { 'registry-export': 'false' }) }, 'not exported'],
    [under(OWN, { ...NEEDED, 'registry-export': 'True' }), 'not exported'],
    [under('other.dev/', NEEDED), 'not exported'],
    [{}, 'not exported'],
    [under(OWN, { ...NEEDED, 'registry-url': undefined }), 'it has no registry-url'],
    [under(OWN, { ...NEEDED, 'registry-description': '' }), 'it has no registry-description'],
    [
      under(OWN, { ...NEEDED, 'registry-url': 'file:///etc/passwd' }),
      'registry-url is no http or https URL, or has a user in it',
    ],
    [
      under(OWN, { ...NEEDED, 'registry-url': 'https://u:p@a.example' }),
      'registry-url is no http or https URL, or has a user in it',
    ],
  ])('%j: %s', (annotations, expected) => {
    expect(outcome(derive(annotations))).toBe(expected);
  });
});

test('a document that is larger than others may be is refused at once', () => {
  const large = derive(under(OWN, { ...NEEDED, 'registry-description': '\0'.repeat(50_000) }));
  expect(outcome(large)).toMatch(/^the document has 300\d{3} bytes, at most 262144 are allowed$/);
});

describe('claims', () => {
  const claimed = (...texts: readonly unknown[]): string =>
    outcome(
      derive({
        ...under(OWN, NEEDED),
        ...(texts.length > 0 ? { [`${OWN}authz-claims`]: texts[0] } : {}),
        ...(texts.length > 1 ? { [`${ALIAS}authz-claims`]: texts[1] } : {}),
      }),
    );

  test.each([
    [['{"org":"acme"}'], '{"org":["acme"]}'],
    [['{ "team": ["b", "a"] }'], '{"team":["a","b"]}'],
    [['{}'], ''],
    [[], ''],
    [['{"a":"x"}', '{"a":["x"]}'], '{"a":["x"]}'],
    [['{"constructor":"x"}'], '{"constructor":["x"]}'],
  ])('%j are %s', (texts, expected) => expect(claimed(...texts)).toBe(expected));

  test.each([
    ['', 'authz-claims is not JSON'],
    ['{"org":', 'authz-claims is not JSON'],
    ['{"org":"a","org":"b"}', 'authz-claims names a claim twice'],
    ['{"org":"a","\\u006frg":"b"}', 'authz-claims names a claim twice'],
    ['["org"]', 'authz-claims: claims must be a map of strings or arrays of strings'],
    ['null', 'authz-claims: claims must be a map of strings or arrays of strings'],
    ['{"level":3}', 'authz-claims: claim "level": value must be a string or array of strings'],
    ['{"org":["a",1]}', 'authz-claims: claim "org": array element [1] must be a string'],
    [{ org: 'a' }, 'authz-claims is not JSON'],
  ])('%j hide the object', (text, refusal) => expect(claimed(text)).toBe(refusal));

  test('that differ under the two prefixes hide the object, and so does one that is wrong', () => {
    expect(claimed('{"a":"x"}', '{"a":"y"}')).toBe(
      'skep.dev/authz-claims and toolhive.stacklok.dev/authz-claims differ',
    );
    expect(claimed('{"a":"x"}', '{"a":')).toBe('authz-claims is not JSON');
    expect(claimed('{}', '{"a":"x"}')).toMatch(/ differ$/);
  });

  test('nested too deeply to be read hide the object', () => {
    expect(claimed('['.repeat(200_000))).toBe('authz-claims is not JSON');
  });
});

describe('the document', () => {
  test('says what the annotations say', () => {
    const document = documentOf(
      {
        'registry-title': 'A',
        'registry-icon': 'https://a.example/i.png',
        'registry-category': 'search',
        'registry-version': 'v2.0.1-rc.1',
        tools: '["find","get"]',
        'tool-definitions': '[{"name":"find"}]',
      },
      { image: 'ghcr.io/acme/a:1.2.3', transport: 'stdio', proxyMode: 'sse' },
    );
    expect(document).toEqual({
      $schema: expect.stringContaining('server.schema.json'),
      name: 'dev.skep.k8s.prod/a',
      title: 'A',
      description: 'Serves a',
      version: 'v2.0.1-rc.1',
      icons: [{ src: 'https://a.example/i.png' }],
      packages: [
        {
          registryType: 'oci',
          identifier: 'ghcr.io/acme/a:1.2.3',
          version: '1.2.3',
          transport: { type: 'sse', url: 'https://a.example/mcp' },
        },
      ],
      remotes: [{ type: 'streamable-http', url: 'https://a.example/mcp' }],
      _meta: {
        'io.modelcontextprotocol.registry/publisher-provided': {
          'io.github.stacklok': {
            'https://a.example/mcp': {
              status: 'active',
              tags: ['search'],
              tools: ['find', 'get'],
              tool_definitions: [{ name: 'find' }],
              metadata: {
                kubernetes: {
                  kind: 'MCPServer',
                  namespace: 'prod',
                  name: 'a',
                  uid: 'u',
                  image: 'ghcr.io/acme/a:1.2.3',
                  transport: 'sse',
                },
              },
            },
          },
        },
      },
    });
  });

  test.each([
    ['ghcr.io/a/b:2.1.0', '2.1.0', '2.1.0'],
    ['registry:5000/a/b', '1.0.0', 'latest'],
    ['registry:5000/a/b:7', '7', '7'],
    ['a/b:latest', '1.0.0', 'latest'],
    ['a/b:1.x', '1.0.0', '1.x'],
    ['a/b@sha256:ab', '1.0.0', 'sha256:ab'],
    ['a/b:3@sha256:ab', '3', 'sha256:ab'],
  ])('of the image %s has version %s and its package %s', (image, version, packaged) => {
    expect(documentOf({}, { image })).toMatchObject({ version, packages: [{ version: packaged }] });
  });

  test('of another kind names no package, whatever its spec says', () => {
    expect(documentOf({}, { image: 'a/b:3' }, 'Deployment')).not.toHaveProperty('packages');
    expect(documentOf({}, { image: 'a/b:3' }, 'Deployment')).toMatchObject({ version: '1.0.0' });
  });

  test.each([
    ['registry-version', '1.2', 'registry-version is no version of three numbers and is ignored'],
    ['registry-version', '1.2.3+x', 'registry-version is no version of three numbers and is ignored'],
    ['registry-icon', 'javascript:alert(1)', 'registry-icon is no http or https URL and is ignored'],
    ['tools', '{"a":1}', 'tools is no JSON list and is ignored'],
    ['tools', '["a",1]', 'tools holds something of another type and is ignored'],
    ['tool-definitions', '['.repeat(100_000), 'tool-definitions is no JSON list and is ignored'],
  ])('leaves a wrong %s out (%.20s) and says so', (key, value, warning) => {
    const derived = derive(under(OWN, { ...NEEDED, [key]: value }));
    expect(derived?.warnings).toEqual([`dev.skep.k8s.prod/a: ${warning}`]);
    expect(derived).toHaveProperty('server');
  });

  test('is readable, or the object is refused, whatever the annotations are', () => {
    const suffixes = [
      ...Object.keys(NEEDED),
      'registry-title',
      'registry-icon',
      'registry-category',
      'registry-version',
      'tools',
      'tool-definitions',
      'authz-claims',
    ];
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json(),
      fc.constantFrom('true', '{"org":"a"}', '["a"]', '\0'),
    );
    const annotations = fc.dictionary(
      fc.constantFrom(...suffixes.flatMap((one) => [OWN + one, ALIAS + one])),
      text,
    );
    fc.assert(
      fc.property(
        annotations,
        fc.dictionary(fc.constantFrom('image', 'transport', 'proxyMode'), text),
        (given, spec) => {
          const derived = derive({ ...under(OWN, NEEDED), ...given }, spec);
          if (derived === undefined || !('server' in derived)) return;
          const { json } = derived.server;
          const decoded = decodeEntry({ kind: 'server', value: JSON.parse(json), ...compactText(json) });
          expect(decoded).toHaveProperty('entry');
        },
      ),
    );
  });
});
