import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { RegistryUnderTest } from '../packages/skep/src/runtime/docker/provenance/registry.fixture.ts';
import { Signing } from '../packages/skep/src/runtime/docker/provenance/signing.fixture.ts';
import { verifyImage } from '../packages/skep/src/runtime/docker/provenance/verify-image.ts';
import { median } from './median.ts';
import type { Bench } from './row.ts';

const ROUNDS = 51;
const CEILING_MS = 20;
const WHO = {
  identity: 'https://git.example/team/notes/.github/workflows/build.yml@refs/heads/main',
  repository: 'https://git.example/team/notes',
};

/** What verification adds to a run of an image whose digest was verified before. */
export const verificationBench: Bench = async (report) => {
  const directory = mkdtempSync(path.join(tmpdir(), 'skep-bench-verification-'));
  await using signing = await Signing.open();
  await using registry = await new RegistryUnderTest().open();
  try {
    const trustedRoot = path.join(directory, 'trusted_root.json');
    writeFileSync(trustedRoot, JSON.stringify(signing.trustedRoot));
    const digest = registry.image('1');
    registry.signed(digest, [await signing.simple(digest, WHO)]);
    const verify = (localDigest?: string): Promise<string> =>
      verifyImage({
        reference: `${registry.host}/team/notes:1`,
        expected: { repository_uri: WHO.repository },
        localDigest,
        trustedRoot,
        credentials: { env: {} },
        connections: { allowPrivate: true },
        cacheDir: directory,
        now: Date.now(),
        report: { step() {}, detail() {} },
        signal: new AbortController().signal,
      });
    await verify();
    report({
      name: 'verification: a known digest',
      value: await milliseconds(() => verify(digest)),
      unit: 'ms',
      ceiling: CEILING_MS,
    });
    report({
      name: 'verification: a known digest, asked of the registry by its tag',
      value: await milliseconds(() => verify()),
      unit: 'ms',
      ceiling: CEILING_MS,
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
};

async function milliseconds(action: () => Promise<unknown>): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const started = performance.now();
    await action();
    times.push(performance.now() - started);
  }
  return median(times);
}
