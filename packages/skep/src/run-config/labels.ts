import { SkepError } from '@skep/core/errors/skep-error.ts';

// Kubernetes label rules, so that a workload can be moved there.
const PART = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const DNS_LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
const MAX_PREFIX = 253;
/** More than anybody needs, and little enough for every engine. */
const MAX_LABELS = 256;
/** As much of a wrong label as a message shows. */
const MAX_SHOWN = 100;

/** Labels in which Skep or ToolHive states facts about a workload: nobody else may write them. */
export function isReservedLabel(key: string): boolean {
  return key === 'toolhive' || key.startsWith('toolhive-') || key.startsWith('skep.');
}

/** True when a person or a file may give a container this label. */
export function isLabel(key: string, value: string): boolean {
  if (isReservedLabel(key) || (value !== '' && !PART.test(value))) return false;
  const slash = key.indexOf('/');
  return PART.test(key.slice(slash + 1)) && (slash === -1 || isSubdomain(key.slice(0, slash)));
}

const isSubdomain = (text: string): boolean =>
  text.length <= MAX_PREFIX && text.split('.').every((part) => DNS_LABEL.test(part));

/** Labels as a person gave them, trimmed. Fails with `usage/invalid-value` naming the first that is none. */
export function checkLabels(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(labels);
  checkCount(entries.length);
  return Object.fromEntries(entries.map(([key, value]) => checkLabel(key, value)));
}

function checkCount(count: number): void {
  if (count <= MAX_LABELS) return;
  throw new SkepError('usage/invalid-value', {
    message: `${count} labels are too many`,
    hint: `give at most ${MAX_LABELS}`,
  });
}

function checkLabel(key: string, value: string): readonly [key: string, value: string] {
  const trimmed = [key.trim(), value.trim()] as const;
  if (isLabel(...trimmed)) return trimmed;
  throw new SkepError('usage/invalid-value', {
    message: `invalid label "${`${key}=${value}`.slice(0, MAX_SHOWN)}"`,
    hint: 'keys and values have up to 63 letters, digits, dots, dashes and underscores; skep. is reserved',
  });
}

/** `key=value` texts that select workloads; each has to hold. Fails as `checkLabels` does. */
export function parseSelectors(texts: readonly string[]): readonly (readonly [key: string, value: string])[] {
  return texts.map((text) => {
    const equals = text.indexOf('=');
    if (equals !== -1) return checkLabel(text.slice(0, equals), text.slice(equals + 1));
    const message = `invalid label "${text.slice(0, MAX_SHOWN)}"`;
    throw new SkepError('usage/invalid-value', { message, hint: 'write key=value' });
  });
}

interface Exported {
  readonly name: string;
  readonly transport: string;
  readonly port: number;
}

/** Labels without which ToolHive takes no file: in exports only, never on what runs (decision 0186). */
export function toolhiveLabels({ name, transport, port }: Exported): Readonly<Record<string, string>> {
  return {
    toolhive: 'true',
    'toolhive-name': name,
    'toolhive-basename': name,
    'toolhive-transport': transport,
    'toolhive-port': `${port}`,
  };
}

/** Facts that both tools state, each with its own prefix (docs/behaviour/run.md#labels). */
const FACTS =
  /^(?:toolhive|(?:toolhive-|skep\.)(?:name|basename|transport|port|network-isolation|managed|group|state|spec|host-port))$/;

interface OwnLabels {
  readonly labels: unknown;
  /** Reserved labels that were left out although they are no known statement of fact. */
  readonly dropped: readonly string[];
}

/** A file's labels without those that are written anew. Fails as `refuse` says for what is no label. */
export function withoutFacts(value: unknown, refuse: (label: string) => SkepError): OwnLabels {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { labels: value, dropped: [] };
  const entries = Object.entries(value);
  checkCount(entries.length);
  const own = entries.filter(([key]) => !isReservedLabel(key));
  const bad = own.find(([key, text]) => typeof text === 'string' && !isLabel(key, text));
  if (bad) throw refuse(bad[0]);
  const reserved = entries.map(([key]) => key).filter(isReservedLabel);
  return { labels: Object.fromEntries(own), dropped: reserved.filter((key) => !FACTS.test(key)) };
}
