import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Objects of one workload. A Service's name has at most 63 characters (RFC 1123 §2.1), and `mcp-` and `-headless` are of it. */
const MAX_NAME = 50;

/** Fails with `runtime/invalid-workload` where objects of a cluster cannot be called so. */
export function checkObjectName(name: string): void {
  if (name.length <= MAX_NAME && /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/.test(name)) return;
  throw new SkepError('runtime/invalid-workload', {
    message: `no object of a cluster can be called "${name.slice(0, 80)}"`,
    hint: `give --name of lower-case letters, digits and dashes, ${MAX_NAME} characters at most`,
  });
}

export interface ObjectNames {
  readonly set: string;
  readonly pod: string;
  readonly secret: string;
  readonly service: string;
  readonly headless: string;
  readonly policy: string;
}

/** What the objects of a workload are called. */
export function objectNames(name: string): ObjectNames {
  return {
    set: name,
    pod: `${name}-0`,
    secret: `mcp-${name}-env`,
    service: `mcp-${name}`,
    headless: `mcp-${name}-headless`,
    policy: `mcp-${name}`,
  };
}

export const MANAGED = 'skep.dev/managed';
export const NAME = 'skep.dev/name';
export const STATE = 'skep.dev/state';

/** By which all objects of a workload, and its pod, are found. */
export function ownLabels(name: string, owner: string): Readonly<Record<string, string>> {
  return { app: name, [MANAGED]: 'true', [NAME]: name, [STATE]: labelValue(owner) };
}

const KEY = /^(?:[a-z0-9](?:[a-z0-9.-]{0,200}[a-z0-9])?\/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/;
/** Prefixes by which a cluster, or Skep, steers something. */
const RESERVED = /(?:^|\.)(?:kubernetes\.io|k8s\.io|skep\.dev)\//;

/** Labels of a person as a cluster takes them: keys that it refuses are left out, values are made to fit. */
export function shownLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const fitting = Object.entries(labels).filter(([key]) => KEY.test(key) && !RESERVED.test(key));
  return Object.fromEntries(fitting.map(([key, value]) => [key, labelValue(value)]));
}

/** At most 63 letters, digits, dashes, dots and underscores, with a letter or digit at either end; or nothing. */
function labelValue(text: string): string {
  const plain = text.replaceAll(/[^\w.-]/g, '-').slice(0, 63);
  return plain.replaceAll(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '');
}
