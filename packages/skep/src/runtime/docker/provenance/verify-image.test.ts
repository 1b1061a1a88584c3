import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExtensionProvenance } from '@skep/core/catalog/publisher-extension.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { scriptedEngine } from '../engine.fixture.ts';
import { RegistryUnderTest } from './registry.fixture.ts';
import { Signing, type Who } from './signing.fixture.ts';
import type { Verification } from './verification.ts';
import { verifyImage } from './verify-image.ts';

const WORKFLOW = '/.github/workflows/build.yml';
const REPOSITORY = 'https://git.example/team/notes';
const WHO: Who = {
  identity: `${REPOSITORY}${WORKFLOW}@refs/heads/main`,
  repository: REPOSITORY,
  ref: 'refs/heads/main',
  runner: 'github-hosted',
  issuer: 'https://token.example',
};
const EXPECTED: ExtensionProvenance = {
  sigstore_url: 'tuf-repo-cdn.sigstore.dev',
  repository_uri: REPOSITORY,
  repository_ref: 'refs/heads/main',
  signer_identity: WORKFLOW,
  runner_environment: 'github-hosted',
  cert_issuer: 'https://token.example',
};

let signing: Signing;
let directory: string;
let trustedRoot: string;
let registry: RegistryUnderTest;
let digest: string;
beforeAll(async () => {
  signing = await Signing.open();
  directory = await mkdtemp(join(tmpdir(), 'skep-verify-'));
  trustedRoot = join(directory, 'trusted_root.json');
  await writeFile(trustedRoot, JSON.stringify(signing.trustedRoot));
});
afterAll(async () => {
  await signing[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});
beforeEach(async () => {
  registry = await new RegistryUnderTest().open();
  digest = registry.image('1');
});
afterEach(async () => {
  await registry[Symbol.asyncDispose]();
  await rm(join(directory, 'verified'), { recursive: true, force: true });
});

const steps: string[] = [];
const verify = (more: Partial<Verification> = {}): Promise<string> =>
  verifyImage({
    reference: `${registry.host}/team/notes:1`,
    expected: EXPECTED,
    trustedRoot,
    credentials: { env: {} },
    connections: { allowPrivate: true },
    cacheDir: directory,
    now: Date.now(),
    report: { step: (title) => void steps.push(title), detail: () => {} },
    signal: new AbortController().signal,
    ...more,
  });
const unverified = (why: string) =>
  expect.objectContaining({ code: 'runtime/unverified', message: expect.stringContaining(why) });

describe('an image is verified', () => {
  test('by a signature of cosign, and then run by the digest that was verified', async () => {
    registry.signed(digest, [await signing.simple(digest, WHO)]);
    expect(await verify()).toBe(`${registry.host}/team/notes:1@${digest}`);
  });

  test.each([true, false])('by a bundle that refers to it (API for referrers: %s)', async (knows) => {
    registry.knowsReferrers = knows;
    registry.refers(digest, await signing.statement(digest, WHO));
    expect(await verify()).toBe(`${registry.host}/team/notes:1@${digest}`);
  });

  test('when one of several signatures does', async () => {
    const other = {
      ...WHO,
      identity: 'https://git.example/mallory/x@main',
      repository: 'https://git.example/mallory/x',
    };
    registry.signed(digest, [await signing.simple(digest, other), await signing.simple(digest, WHO)]);
    expect(await verify()).toContain(digest);
  });

  test('by what a statement attests, where the catalogue says what that is', async () => {
    const attestation = { predicate_type: 'https://example.com/review/v1', predicate: { passed: true } };
    registry.refers(digest, await signing.statement(digest, WHO));
    await expect(verify({ expected: { ...EXPECTED, attestation } })).rejects.toThrow(
      unverified('its attestation is "https://slsa.dev/provenance/v1", not "https://example.com/review/v1"'),
    );
    const said = { predicateType: 'https://example.com/review/v1', predicate: { passed: false } };
    registry.refers(digest, await signing.statement(digest, WHO, said));
    await expect(verify({ expected: { ...EXPECTED, attestation } })).rejects.toThrow(
      unverified('what it attests is something else'),
    );
    registry.refers(digest, await signing.statement(digest, WHO, { ...said, predicate: { passed: true } }));
    expect(await verify({ expected: { ...EXPECTED, attestation } })).toContain(digest);
  });

  test.each<['Basic' | 'Bearer', string]>([
    ['Basic', `Basic ${Buffer.from('ann:pw').toString('base64')}`],
    ['Bearer', 'Bearer for-Basic'],
  ])('behind a sign-in by %s', async (challenge, shown) => {
    registry.challenge = challenge;
    registry.signed(digest, [await signing.simple(digest, WHO)]);
    const env = { REGISTRY_USERNAME: 'ann', REGISTRY_PASSWORD: 'pw' };
    expect(await verify({ credentials: { env } })).toContain(digest);
    expect(registry.asked.at(-1)?.authorization).toContain(shown);
    expect(registry.asked.filter(({ path }) => path.startsWith('/token')).map(({ path }) => path)).toEqual(
      challenge === 'Basic' ? [] : ['/token?service=it&scope=repository%3Ateam%2Fnotes%3Apull'],
    );
  });
});

describe('an image is not verified', () => {
  test('that nobody signed', async () => {
    await expect(verify()).rejects.toThrow(unverified('the image is not signed'));
  });

  test.each<[Partial<Who>, string]>([
    [
      { repository: 'https://git.example/mallory/notes' },
      'its repository is "https://git.example/mallory/notes"',
    ],
    [{ identity: `${REPOSITORY}/.github/workflows/other.yml@refs/heads/main` }, 'its signer is'],
    // The same path, in a repository of somebody else.
    [{ identity: `https://git.example/mallory/notes${WORKFLOW}@refs/heads/main` }, 'its signer is'],
    [{ ref: 'refs/heads/mine' }, 'its ref is "refs/heads/mine", not "refs/heads/main"'],
    [{ runner: 'self-hosted' }, 'its runner is "self-hosted", not "github-hosted"'],
    [{ issuer: 'https://other.example' }, 'its issuer is "https://other.example"'],
  ])('that is signed by %j', async (more, why) => {
    registry.signed(digest, [await signing.simple(digest, { ...WHO, ...more })]);
    await expect(verify()).rejects.toThrow(unverified('image provenance does not match'));
    await expect(verify()).rejects.toThrow(unverified(why));
  });

  test('whose signature is about another image', async () => {
    const other = registry.image('2');
    registry.signed(digest, [await signing.simple(other, WHO)]);
    await expect(verify()).rejects.toThrow(unverified('its signature is about another image'));
    registry.refers(digest, await signing.statement(other, WHO));
    await expect(verify()).rejects.toThrow(unverified('its signature is about another image'));
  });

  test('whose signature was made by an authority that nobody trusts', async () => {
    await using stranger = await Signing.open();
    registry.signed(digest, [await stranger.simple(digest, WHO)]);
    await expect(verify()).rejects.toThrow(unverified('its signature is not valid'));
  });

  test('by the public root of trust, where a stand-in signed', async () => {
    registry.signed(digest, [await signing.simple(digest, WHO)]);
    await expect(verify({ trustedRoot: undefined })).rejects.toThrow(
      unverified('its signature is not valid'),
    );
  });

  test('whose signed text was changed', async () => {
    const { payload, annotations } = await signing.simple(registry.image('2'), WHO);
    const changed = Buffer.from(payload.toString('utf8').replace(/sha256:[0-9a-f]{64}/, digest));
    registry.signed(digest, [{ payload: changed, annotations }]);
    await expect(verify()).rejects.toThrow(unverified('its signature is not valid'));
  });

  test('whose registry gives other bytes than it names', async () => {
    const layer = await signing.simple(digest, WHO);
    registry.signed(digest, [layer]);
    const payload = registry.blob(layer.payload).digest;
    registry.lies.set(payload, '{"schemaVersion":2}');
    await expect(verify()).rejects.toThrow(unverified(`gave something else than ${payload}`));
  });

  test.each<ExtensionProvenance>([
    { cert_issuer: 'https://token.example' },
    // Everybody may have a workflow of that path in a repository of their own.
    { signer_identity: WORKFLOW, cert_issuer: 'https://token.example' },
  ])('whose catalogue entry names nobody who would have to sign: %j', async (expected) => {
    const repository = 'https://git.example/mallory/notes';
    const identity = `${repository}${WORKFLOW}@refs/heads/main`;
    registry.signed(digest, [await signing.simple(digest, { ...WHO, repository, identity })]);
    await expect(verify({ expected })).rejects.toThrow(
      unverified('its catalogue entry does not say who signs it'),
    );
  });

  test('by a root of trust that is unknown, or is none', async () => {
    registry.signed(digest, [await signing.simple(digest, WHO)]);
    const expected = { ...EXPECTED, sigstore_url: 'sigstore.corp.example' };
    await expect(verify({ expected, trustedRoot: undefined })).rejects.toThrow(
      unverified('sigstore.corp.example'),
    );
    expect(await verify({ expected })).toContain(digest);
    const broken = join(directory, 'broken.json');
    await writeFile(broken, '{"tlogs":3}');
    await expect(verify({ trustedRoot: broken })).rejects.toThrow(unverified('is no root of trust'));
  });

  test.each(['tlogs', 'ctlogs'])(
    'of which the %s that the root of trust names know nothing',
    async (logs) => {
      registry.signed(digest, [await signing.simple(digest, WHO)]);
      const without = join(directory, `${logs}.json`);
      await writeFile(without, JSON.stringify({ ...signing.trustedRoot, [logs]: [] }));
      await expect(verify({ trustedRoot: without })).rejects.toThrow(
        unverified('its signature is not valid'),
      );
    },
  );

  test.each<[string, string | Buffer, string]>([
    ['its manifest', 'no JSON', 'gave something else than'],
    ['its manifest', '[]', 'gave something else than'],
    ['its manifest', Buffer.alloc(5 * 1024 * 1024, ' '), '4194304'],
    ['its signatures', 'no JSON', 'gave something else than'],
    ['its signatures', '{"layers":7}', 'the image is not signed'],
    [
      'its signatures',
      '{"layers":[null,{},{"mediaType":"x","digest":"../../etc/passwd"}]}',
      'the image is not signed',
    ],
    ['its signatures', Buffer.alloc(5 * 1024 * 1024, ' '), '4194304'],
    ['what refers to it', '{"manifests":{"a":1}}', 'the image is not signed'],
  ])('whose registry answers nonsense for %s (%#)', async (what, bytes, why) => {
    const names: Record<string, string> = {
      'its manifest': '1',
      'its signatures': `${digest.replace(':', '-')}.sig`,
      'what refers to it': digest,
    };
    registry.lies.set(names[what] ?? '', bytes);
    const localDigest = what === 'its manifest' ? undefined : digest;
    await expect(verify({ localDigest })).rejects.toThrow(why);
  });

  test.each([
    ['a bundle of more than 10 MiB', 10 * 1024 * 1024, '10485760'],
    ['a signature of more than 1 MiB', 1024 * 1024, '1048576'],
  ])('whose registry has %s', async (what, most, why) => {
    const large = Buffer.alloc(most + 1, ' ');
    const layer = await signing.simple(digest, WHO);
    const bundle = await signing.statement(digest, WHO);
    if (what.includes('bundle')) registry.refers(digest, bundle);
    else registry.signed(digest, [layer]);
    const bytes = what.includes('bundle') ? Buffer.from(JSON.stringify(bundle)) : layer.payload;
    registry.lies.set(registry.blob(bytes).digest, large);
    await expect(verify()).rejects.toThrow(why);
  });

  test('whose registry lists more signatures than anybody makes', async () => {
    const other = registry.image('2');
    const about = await signing.simple(other, WHO);
    registry.signed(digest, [...Array.from({ length: 50 }, () => about), await signing.simple(digest, WHO)]);
    await expect(verify()).rejects.toThrow(unverified('its signature is about another image'));
    expect(registry.asked.filter(({ path }) => path.includes('/blobs/'))).toHaveLength(50);
  });

  test.each(['http://token.example/x', 'ftp://127.0.0.1/x', 'nonsense'])(
    'whose registry sends its login to %s',
    async (realm) => {
      registry.challenge = 'Bearer';
      registry.realm = realm;
      const env = { REGISTRY_USERNAME: 'ann', REGISTRY_PASSWORD: 'pw' };
      await expect(verify({ credentials: { env } })).rejects.toThrow('asks to sign in, and Skep cannot');
      expect(registry.asked.every(({ authorization }) => authorization === undefined)).toBe(true);
    },
  );

  test('whose registry has its bytes elsewhere, without showing a login there', async () => {
    await using other = await new RegistryUnderTest().open();
    const layer = await signing.simple(digest, WHO);
    registry.signed(digest, [layer]);
    other.blob(Buffer.from('other bytes'));
    other.lies.set(registry.blob(layer.payload).digest, 'other bytes');
    registry.challenge = 'Basic';
    registry.elsewhere = `http://${other.host}`;
    const env = { REGISTRY_USERNAME: 'ann', REGISTRY_PASSWORD: 'pw' };
    await expect(verify({ credentials: { env } })).rejects.toThrow('gave something else than');
    expect(other.asked).toEqual([expect.objectContaining({ authorization: undefined })]);
  });

  test('whose registry does not end to answer', async () => {
    registry.silent.add(`${digest.replace(':', '-')}.sig`);
    await expect(verify({ withinMs: 200 })).rejects.toThrow(unverified('within 0.2 s'));
    const ending = new AbortController();
    const asked = verify({ signal: ending.signal });
    ending.abort(new SkepError('run/cancelled'));
    await expect(asked).rejects.toMatchObject({ code: 'run/cancelled' });
  });

  test('that is not there', async () => {
    await expect(verify({ reference: `${registry.host}/team/notes:9` })).rejects.toThrow(
      expect.objectContaining({ code: 'runtime/image-not-found' }),
    );
  });
});

test('GitHub’s own instance, which logs nothing in public, is believed by its root of trust and its times', async () => {
  const expected = { ...EXPECTED, sigstore_url: 'https://tuf-repo.github.com/' };
  registry.refers(digest, await signing.statement(digest, WHO, { seenBy: 'clock' }));
  expect(await verify({ expected })).toContain(digest);
  await expect(verify({ expected: EXPECTED })).rejects.toThrow(unverified('its signature is not valid'));
  await expect(verify({ expected, trustedRoot: undefined })).rejects.toThrow(
    unverified('tuf-repo.github.com'),
  );
  await using stranger = await Signing.open();
  const other = join(directory, 'stranger.json');
  const { timestampAuthorities } = stranger.trustedRoot;
  await writeFile(other, JSON.stringify({ ...signing.trustedRoot, timestampAuthorities }));
  await expect(verify({ expected, trustedRoot: other })).rejects.toThrow(
    unverified('its signature is not valid'),
  );
});

describe('what is in doubt and runs all the same', () => {
  /** What an engine prepares of the image, where it has a copy of that digest or none. */
  async function prepared(reference: string, copy?: string, how: object = {}) {
    const [repository = ''] = reference.split(/:1$/);
    const there = { body: { Id: 'x', Config: {}, RepoDigests: [`${repository}@${copy ?? ''}`] } };
    const pulled = [reference, ...[digest, copy].map((one) => `${reference}@${one ?? ''}`)];
    const { runtime, report } = await scriptedEngine({
      ...Object.fromEntries(pulled.map((one) => [`GET /images/${one}/json`, there])),
      ...(copy === undefined && {
        [`GET /images/${reference}/json`]: [{ status: 404, body: {} }, { status: 404, body: {} }, there],
      }),
      'POST /images/create': { lines: [] },
    });
    const { signal } = new AbortController();
    return runtime.prepare({
      source: { kind: 'image', reference },
      verification: { expected: EXPECTED, required: false, trustedRoot, ...how },
      addPackages: [],
      report,
      signal,
    });
  }

  test('is what was looked at, whatever its tag means by then', async () => {
    const reference = `${registry.host}/team/notes:1`;
    const doubt = expect.stringContaining('the image is not signed') as string;
    expect(await prepared(reference)).toMatchObject({ reference: `${reference}@${digest}`, doubt });
    const copy = registry.image('2');
    expect(await prepared(reference, copy)).toMatchObject({ reference: `${reference}@${copy}`, doubt });
  });

  test.each([
    ['nobody signed it', {}, 'the image is not signed'],
    ['somebody else signed it', { expected: { ...EXPECTED, runner_environment: 'x' } }, 'image provenance does not match'],
    ['the root of trust cannot be read', { trustedRoot: '/nowhere/root.json' }, 'does not exist'],
    ['its Sigstore is none that is known', { expected: { ...EXPECTED, sigstore_url: 'x.invalid' }, trustedRoot: undefined }, 'x.invalid'],
  ])('is refused where it has to be verified: %s', async (what, how, why) => {
    if (what.includes('else')) registry.signed(digest, [await signing.simple(digest, WHO)]);
    const reference = `${registry.host}/team/notes:1`;
    const said = expect.stringContaining(why) as string;
    expect(await prepared(reference, digest, how)).toMatchObject({ doubt: said });
    await expect(prepared(reference, digest, { ...how, required: true })).rejects.toMatchObject({ message: said });
  }); // prettier-ignore

  test('is what its tag means where nobody says more', async () => {
    await registry[Symbol.asyncDispose]();
    const reference = `${registry.host}/team/notes:1`;
    const doubt = expect.any(String) as string;
    expect(await prepared(reference)).toMatchObject({ reference, doubt });
    expect(await prepared(reference, digest)).toMatchObject({ reference: `${reference}@${digest}`, doubt });
  });
});

describe('what was verified', () => {
  test('is not looked at again for a week, nor is anybody asked or told of it', async () => {
    registry.signed(digest, [await signing.simple(digest, WHO)]);
    await verify();
    registry.asked.length = 0;
    steps.length = 0;
    expect(await verify({ localDigest: digest })).toContain(digest);
    expect([registry.asked, steps]).toEqual([[], []]);
    await expect(
      verify({ localDigest: digest, expected: { ...EXPECTED, runner_environment: 'x' } }),
    ).rejects.toThrow();
    const [known = ''] = await readdir(join(directory, 'verified'));
    const old = new Date(Date.now() - 8 * 24 * 60 * 60 * 1000);
    await utimes(join(directory, 'verified', known), old, old);
    registry.asked.length = 0;
    await verify({ localDigest: digest });
    expect(registry.asked.length).toBeGreaterThan(0);
  });
});
