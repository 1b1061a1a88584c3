import { hash } from 'node:crypto';
import { VARIABLE_NAME } from '@skep/core/catalog/variable-name.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';

/** A secret, and the variable that a server gets it in. */
export interface SecretReference {
  readonly name: string;
  readonly target: string;
}

/** Targets of the secrets that the proxy of a workload shows an identity provider, and a token endpoint. */
export const OIDC_CLIENT_SECRET = 'SKEP_OIDC_CLIENT_SECRET';
export const EXCHANGE_CLIENT_SECRET = 'SKEP_TOKEN_EXCHANGE_CLIENT_SECRET';
/** Target of the headers that the proxy shows a collector, as one JSON object. */
export const OTEL_HEADERS = 'SKEP_OTEL_HEADERS';

/** Targets of the secrets that the proxy of a server elsewhere signs in with. */
export const REMOTE_CLIENT_SECRET = 'SKEP_REMOTE_AUTH_CLIENT_SECRET';
export const REMOTE_BEARER_TOKEN = 'SKEP_REMOTE_AUTH_BEARER_TOKEN';

const OF_PROXY: ReadonlySet<string> = new Set([
  OIDC_CLIENT_SECRET,
  EXCHANGE_CLIENT_SECRET,
  OTEL_HEADERS,
  REMOTE_CLIENT_SECRET,
  REMOTE_BEARER_TOKEN,
]);
const WEBHOOK_SECRET = 'SKEP_WEBHOOK_SECRET_';

/** The target of a secret that the proxy signs its questions to webhooks with. */
export function webhookTarget(name: string): string {
  return `${WEBHOOK_SECRET}${hash('sha256', name).slice(0, 16).toUpperCase()}`;
}

/** True for the targets of secrets that are the proxy's: the server never gets them. */
export function isOfProxy(target: string): boolean {
  return OF_PROXY.has(target) || target.startsWith(WEBHOOK_SECRET);
}

/** Begins the names of what Skep keeps for itself. */
const SYSTEM = '__skep_';
const OF_WORKLOADS = `${SYSTEM}workloads_`;
const OF_SIGN_INS = `${SYSTEM}sign_in_`;
const MAX_NAME_CHARS = 256;
const FORM = /^(?<name>[^,]+),target=(?<target>.+)$/s;

/** Fails with `secrets/invalid-reference`, and with `secrets/invalid-name`. */
export function parseReference(text: string): SecretReference {
  const { name, target } = FORM.exec(text)?.groups ?? {};
  if (name === undefined || target === undefined) {
    throw new SkepError('secrets/invalid-reference', {
      message:
        text === ''
          ? 'secret parameter cannot be empty'
          : `invalid secret parameter format: ${JSON.stringify(printable(text))}`,
    });
  }
  if (!VARIABLE_NAME.test(target)) {
    throw new SkepError('secrets/invalid-reference', {
      message: `the target of the secret "${printable(name)}" is no name of an environment variable: ${JSON.stringify(printable(target))}`,
    });
  }
  return { name: checkName(name), target };
}

export const formatReference = ({ name, target }: SecretReference): string => `${name},target=${target}`;

/** As `parseReference`, for text that may say anything. */
export function isReference(text: string): boolean {
  try {
    parseReference(text);
    return true;
  } catch {
    return false;
  }
}

/** True for names that are Skep's own, which commands neither take nor list. */
export const isSystemName = (name: string): boolean => name.startsWith(SYSTEM);

/** The name under which the value of a variable is stored that belongs to one workload, and goes with it. */
export const ownedName = (workload: string, variable: string): string =>
  // No workload's name has a slash, so no two workloads share one.
  `${OF_WORKLOADS}${workload}/${variable}`;

/** The name under which a login file of builds is stored, which is a person's own matter. */
export const buildAuthSecret = (kind: string): string => `${SYSTEM}build_auth_file_${kind}`;

/** The name under which a sign-in is stored; its key may be an address, which is no name of a secret. */
export const signInSecret = (key: string): string => `${OF_SIGN_INS}${hash('sha256', key).slice(0, 32)}`;

export const isSignInSecret = (name: string): boolean => name.startsWith(OF_SIGN_INS);

/** True for what is stored for this workload alone. */
export const isOwnedBy = (workload: string, name: string): boolean =>
  name.startsWith(`${OF_WORKLOADS}${workload}/`);

/** The name as a person may choose it. Fails with `secrets/invalid-name`. */
export function checkUserName(name: string): string {
  if (isSystemName(name)) {
    throw new SkepError('secrets/invalid-name', {
      message: `the secret name "${printable(name)}" is reserved for system use`,
      hint: `choose one that does not begin with ${SYSTEM}`,
    });
  }
  return checkName(name);
}

/** Any name that can be stored. Fails with `secrets/invalid-name`. */
export function checkName(name: string): string {
  const why = whatIsWrong(name);
  if (why === undefined) return name;
  throw new SkepError('secrets/invalid-name', {
    message: `validation error: secret name ${why}`,
  });
}

function whatIsWrong(name: string): string | undefined {
  if (name === '') return 'cannot be empty';
  if (name.length > MAX_NAME_CHARS) return `cannot be longer than ${MAX_NAME_CHARS} characters`;
  if (name.trim() !== name) return 'cannot begin or end with a space';
  const shown = JSON.stringify(printable(name));
  if (/[\p{Cc}\p{Cf}\p{Cs}]/u.test(name)) return `cannot have control characters: ${shown}`;
  return name.includes(',') ? `cannot have a comma: ${shown}` : undefined;
}

/**
 * References as a person or a file writes them. Fails with `secrets/invalid-reference` and `secrets/invalid-name`: what
 * belongs to one workload is not given to another.
 */
export function checkReferences(texts: readonly string[]): readonly SecretReference[] {
  const references = texts.map(parseReference);
  for (const [at, { name, target }] of references.entries()) {
    checkUserName(name);
    if (references.findIndex((one) => one.target === target) === at) continue;
    throw new SkepError('secrets/invalid-reference', {
      message: `two secrets are to be the environment variable ${target}`,
      hint: 'keep one of them',
    });
  }
  return references;
}
