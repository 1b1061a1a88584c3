import type { SkepError } from '@skep/core/errors/skep-error.ts';

// Kubernetes label rules, so that a workload can be moved there.
const PART = /^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
const PREFIX = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;

/** Labels in which Skep or ToolHive states facts about a workload: nobody else may write them. */
export function isReservedLabel(key: string): boolean {
  return key === 'toolhive' || key.startsWith('toolhive-') || key.startsWith('skep.');
}

/** True when a person or a file may give a container this label. */
export function isLabel(key: string, value: string): boolean {
  if (isReservedLabel(key) || (value !== '' && !PART.test(value))) return false;
  const slash = key.indexOf('/');
  return PART.test(key.slice(slash + 1)) && (slash === -1 || PREFIX.test(key.slice(0, slash)));
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
  const own = entries.filter(([key]) => !isReservedLabel(key));
  const bad = own.find(([key, text]) => typeof text === 'string' && !isLabel(key, text));
  if (bad) throw refuse(bad[0]);
  const reserved = entries.map(([key]) => key).filter(isReservedLabel);
  return { labels: Object.fromEntries(own), dropped: reserved.filter((key) => !FACTS.test(key)) };
}
