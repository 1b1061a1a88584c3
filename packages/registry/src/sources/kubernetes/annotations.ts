import { type ClaimLimits, parseClaims } from '@skep/auth/claims/claims.ts';
import { canonicalClaims } from '@skep/auth/claims/same.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { judge } from '@skep/core/json/judge.ts';
import { parseJson } from '@skep/core/json/parsed-json.ts';
import { compactText, repeatedMember } from '@skep/core/json/scan.ts';
import { NO_CLAIMS, type ClaimSet } from '../../access/claim-set.ts';

/** Ours, and the one that objects which moved over carry; ours counts where both are there. */
const PREFIXES = ['skep.dev/', 'toolhive.stacklok.dev/'] as const;

export type Suffix =
  | 'registry-export'
  | 'registry-url'
  | 'registry-description'
  | 'registry-title'
  | 'registry-icon'
  | 'registry-category'
  | 'registry-version'
  | 'tools'
  | 'tool-definitions'
  | 'authz-claims';

/** The annotations of one object, whatever its metadata is. */
export class Annotations {
  readonly #texts: Readonly<Record<string, unknown>>;

  constructor(annotations: unknown) {
    this.#texts = isRecord(annotations) ? annotations : {};
  }

  /** The text of an annotation; undefined where it has none. */
  text(suffix: Suffix): string | undefined {
    const [text] = this.#given(suffix);
    return typeof text === 'string' ? text : undefined;
  }

  /** Whether its owner wants the object in the catalogue: exactly `true`, and no other word for it. */
  get isExported(): boolean {
    return this.text('registry-export') === 'true';
  }

  /**
   * The claims that a caller needs, or why nobody can tell: then nobody may see the object. Strict: a JSON object of texts
   * and lists of texts that names no claim twice, and the same under both prefixes where both are there.
   */
  claims(limits: ClaimLimits): { readonly claims: ClaimSet } | { readonly fault: string } {
    const texts = this.#given('authz-claims');
    const read = texts.map((text) => claimsOf(text, limits));
    const [first = { claims: NO_CLAIMS }, ...others] = read;
    const unread = read.find((one) => 'fault' in one);
    if (unread !== undefined) return unread;
    if (others.some((one) => 'claims' in first && 'claims' in one && one.claims !== first.claims)) {
      return { fault: `${PREFIXES.join('authz-claims and ')}authz-claims differ` };
    }
    return first;
  }

  /** A list in JSON; undefined where there is none, with a `fault` where there is something else. */
  list(suffix: Suffix): { readonly items?: readonly unknown[]; readonly fault?: string } {
    const text = this.text(suffix);
    if (text === undefined) return {};
    const value = judge(text) === 'json' ? parseJson(text) : undefined;
    return Array.isArray(value) ? { items: value } : { fault: `${suffix} is no JSON list` };
  }

  #given(suffix: Suffix): unknown[] {
    const keys = PREFIXES.map((prefix) => prefix + suffix);
    return keys.filter((key) => Object.hasOwn(this.#texts, key)).map((key) => this.#texts[key]);
  }
}

function claimsOf(
  text: unknown,
  limits: ClaimLimits,
): { readonly claims: ClaimSet } | { readonly fault: string } {
  if (typeof text !== 'string' || judge(text) !== 'json') return { fault: 'authz-claims is not JSON' };
  const repeated = repeatedMember(compactText(text).json);
  if (repeated !== undefined) return { fault: 'authz-claims names a claim twice' };
  try {
    return { claims: canonicalClaims(parseClaims(parseJson(text), limits)) };
  } catch (error) {
    return { fault: `authz-claims: ${error instanceof Error ? error.message : 'invalid'}` };
  }
}
