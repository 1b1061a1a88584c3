import { isDeepStrictEqual } from 'node:util';
import type { ExtensionProvenance } from '@skep/core/catalog/publisher-extension.ts';
import type { Signer } from '@sigstore/verify';
import { printable } from '@skep/core/terminal/printable.ts';

/** What the certificate of a signature says, by the names that catalogues use. */
export interface SignerFacts {
  /** Of the workflow or person: a URL or an address. */
  readonly identity: string;
  readonly issuer: string;
  readonly repository: string;
  readonly ref: string;
  readonly runner: string;
}

/** Numbers of the extensions of Fulcio's certificates, below 1.3.6.1.4.1.57264.1 (its oid-info page). */
const RUNNER = 11;
const REPOSITORY = 12;
const REF = 14;
const FULCIO = '1.3.6.1.4.1.57264.1';

export function factsOf({ identity }: Signer): SignerFacts {
  const extension = (number: number): string => {
    const found = identity?.oids?.find(({ oid }) => oid?.id.join('.') === `${FULCIO}.${number}`);
    return found === undefined ? '' : textOf(found.value);
  };
  return {
    identity: identity?.subjectAlternativeName ?? '',
    issuer: identity?.extensions?.issuer ?? '',
    repository: extension(REPOSITORY),
    ref: extension(REF),
    runner: extension(RUNNER),
  };
}

/** DER of a UTF8String (X.690, 8.23): its kind, its length in one to three bytes, its text. */
function textOf(der: Buffer): string {
  const [kind, length = 0] = der;
  if (kind !== 0x0c) return '';
  const start = length < 0x80 ? 2 : 2 + (length & 0x7f);
  return der.subarray(start).toString('utf8');
}

/**
 * True when a provenance says who must have signed; one that does not would take anybody's signature, and so would one that
 * names a workflow by its path alone.
 */
export function namesSigner({ repository_uri, signer_identity }: ExtensionProvenance): boolean {
  return Boolean(repository_uri) || (Boolean(signer_identity) && signer_identity?.startsWith('/') !== true);
}

/**
 * What of a signature is not as the catalogue says, a phrase each; empty where all is. A signer that is a path is a
 * workflow of the repository that the certificate names, whatever its ref.
 */
export function differences(
  facts: SignerFacts,
  statement: Readonly<Record<string, unknown>> | undefined,
  expected: ExtensionProvenance,
): readonly string[] {
  const { signer_identity: signer, attestation } = expected;
  const workflow = facts.identity.replace(/@[^@]*$/, '');
  const local = workflow.startsWith(`${facts.repository}/`)
    ? workflow.slice(facts.repository.length)
    : undefined;
  const compared = [
    ['repository', expected.repository_uri, facts.repository],
    ['ref', expected.repository_ref, facts.ref],
    ['runner', expected.runner_environment, facts.runner],
    ['issuer', expected.cert_issuer, facts.issuer],
    ['signer', [facts.identity, workflow, local].includes(signer ?? '') ? undefined : signer, facts.identity],
    ['attestation', attestation?.predicate_type, statement?.['predicateType'] ?? ''],
  ] as const;
  const told = compared.flatMap(([what, wanted, is]) =>
    !wanted || wanted === is ? [] : [`its ${what} is ${shown(is)}, not ${shown(wanted)}`],
  );
  const { predicate } = attestation ?? {};
  const isOther =
    predicate !== undefined && predicate !== null && !isDeepStrictEqual(predicate, statement?.['predicate']);
  return isOther ? [...told, 'what it attests is something else'] : told;
}

const MAX_SHOWN = 200;
const shown = (value: unknown): string => JSON.stringify(printable(String(value)).slice(0, MAX_SHOWN));
