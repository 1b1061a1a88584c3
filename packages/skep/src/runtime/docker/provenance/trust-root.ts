import { TrustedRoot } from '@sigstore/protobuf-specs';
import seeds from '@sigstore/tuf/seeds.json' with { type: 'json' };
import { toTrustMaterial, type TrustMaterial } from '@sigstore/verify';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readJson } from '@skep/core/files/read-limited.ts';

/** Who is believed to sign certificates, logs and times. */
export interface Trust {
  readonly material: TrustMaterial;
  /** How many of each a signature needs at least. */
  readonly thresholds: {
    readonly ctlogThreshold: number;
    readonly tlogThreshold: number;
    readonly timestampThreshold: number;
  };
}

const PUBLIC_GOOD = 'tuf-repo-cdn.sigstore.dev';
const GITHUB = 'tuf-repo.github.com';
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * The root of trust of a Sigstore instance, which `url` names as catalogues do (a host, with or without scheme). That of
 * the public one came with this release; any other is read from `file`, a `trusted_root.json`, which stands for the
 * public one too. Fails with `runtime/unverified` where there is none, or with `file/*`.
 */
export async function loadTrust(url: string, file: string | undefined): Promise<Trust> {
  const host = url.replace(/^https:\/\//, '').replace(/\/+$/, '') || PUBLIC_GOOD;
  // GitHub's own instance logs nothing in public: its times are those of its timestamp authority.
  const logged = host === GITHUB ? 0 : 1;
  const thresholds = { ctlogThreshold: logged, tlogThreshold: logged, timestampThreshold: 1 };
  if (file !== undefined) {
    return {
      material: materialOf(await readJson(file, { maxBytes: MAX_BYTES, what: 'root of trust' }), file),
      thresholds,
    };
  }
  if (host !== PUBLIC_GOOD) {
    throw new SkepError('runtime/unverified', {
      message: `the catalogue names the Sigstore instance ${JSON.stringify(host)}, whose root of trust is not known here`,
      hint: 'save its trusted_root.json and give it with skep config set sigstore_trusted_root FILE',
    });
  }
  const seed = seeds['https://tuf-repo-cdn.sigstore.dev'].targets['trusted_root.json'];
  return {
    material: materialOf(JSON.parse(Buffer.from(seed, 'base64').toString('utf8')), PUBLIC_GOOD),
    thresholds,
  };
}

function materialOf(value: unknown, where: string): TrustMaterial {
  try {
    const material = toTrustMaterial(TrustedRoot.fromJSON(value));
    if (material.certificateAuthorities.length > 0) return material;
  } catch (cause) {
    throw noRoot(where, cause);
  }
  throw noRoot(where);
}

function noRoot(where: string, cause?: unknown): SkepError {
  return new SkepError('runtime/unverified', {
    message: `"${where}" is no root of trust of Sigstore`,
    hint: 'give a trusted_root.json',
    cause,
  });
}
