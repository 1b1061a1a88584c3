import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { suggestion } from '@skep/core/settings/did-you-mean.ts';
import type { Field } from '@skep/core/settings/field.ts';
import * as shape from '@skep/core/settings/shape.ts';
import { proxySettings } from '@skep/proxy/settings.ts';
import { runSettings } from '../settings/run-settings.ts';
import { withCollector, withExchange, withRemoteAuth, withSignIn } from './import-sign-in.ts';
import { withSteps } from './import-steps.ts';
import { withoutFacts } from './labels.ts';
import { invalidConfig, NAMES_AGAIN } from './run-config.ts';

const rows: readonly Field[] = runSettings;
const keys = rows.flatMap(({ key }) => (key === undefined ? [] : [key]));
const aliases = new Map(
  rows.flatMap(({ alias, key }) => (alias === undefined ? [] : [[alias, key ?? alias]])),
);

type Rule = 'used' | 'harmless' | 'later' | 'unknown';

/** What becomes of a key: its row says it, else the rows below it, refused as one where all are to come. */
function ruleOf(key: string): Rule {
  if (NAMES_AGAIN.includes(key)) return 'used';
  const row = rows.find((one) => one.key === key);
  const below = rows.filter((one) => one.key?.startsWith(`${key}.`));
  const [first = row] = below;
  if (first === undefined) return 'unknown';
  if (row?.harmless) return 'harmless';
  return (row ? [row] : below).every((one) => one.notYet) ? 'later' : 'used';
}

/** True for a key whose members have rules of their own. */
function hasMembers(key: string): boolean {
  return ruleOf(key) === 'used' && keys.some((one) => one.startsWith(`${key}.`));
}

export interface Imported {
  readonly value: unknown;
  /** What the person should know about the file, a phrase each. */
  readonly warnings: readonly string[];
}

/**
 * Makes an exported document of ToolHive or of Skep readable for `decodeRunConfig`: aliases renamed, labels that state
 * facts about another workload dropped. Every key is acted on, named as without effect, or refused as `checkKeys` does.
 */
export function fromToolhive(value: unknown, where: string, text = ''): Imported {
  if (!isRecord(value)) return { value, warnings: [] };
  const moved = withRemoteAuth(withCollector(withExchange(withSteps(withSignIn(renamed(value))))));
  const document = withImage(moved);
  checkKeys(document, where, text);
  const idle = withMembers(document).filter(
    ([key, member]) => ruleOf(key) === 'harmless' && !isNothing(member),
  );
  const { labels, dropped } = withoutFacts(document['container_labels'], (label) =>
    invalidConfig(where, ['container_labels', label], 'is not a label', {
      text,
      hint: 'keys and values have up to 63 letters, digits, dots, dashes and underscores',
    }),
  );
  return {
    value: { ...document, ...(labels === undefined ? {} : { container_labels: labels }) },
    warnings: [
      ...(idle.length === 0 ? [] : [`kept, but without effect yet: ${idle.map(([key]) => key).join(', ')}`]),
      ...(dropped.length === 0 ? [] : [`labels of another tool were left out: ${dropped.join(', ')}`]),
    ],
  };
}

/**
 * A key may stand for a guard, so one that this release neither acts on nor knows to be harmless is refused
 * (decision 0047): `usage/not-available` for what a later release will do, `run/invalid-config` for what no release knows.
 */
export function checkKeys(document: Readonly<Record<string, unknown>>, where: string, text = ''): void {
  const asked = withMembers(document).filter(([key, member]) => !isMet(key, member));
  const unknown = asked.find(([key]) => ruleOf(key) === 'unknown');
  if (unknown) throw unknownKey(unknown[0], where, text);
  if (asked.length === 0) return;
  const several = asked.length > 1;
  throw new SkepError('usage/not-available', {
    message: `${where} uses ${asked.map(shown).join(', ')}, which ${several ? 'are' : 'is'} not available yet`,
    hint: `remove ${several ? 'the keys' : 'the key'} if the workload may run without`,
  });
}

/** The key, and of a list of steps those that are meant. */
function shown([key, member]: readonly [string, unknown]): string {
  return key === 'middleware_configs' ? `"${key}" (${stepsBeyond(member).join(', ')})` : `"${key}"`;
}

/** True when running without the key is what it asks for, or when the rest of the import acts on it. */
function isMet(key: string, member: unknown): boolean {
  if (key === 'middleware_configs') return stepsBeyond(member).length === 0;
  const rule = ruleOf(key);
  return rule === 'used' || rule === 'harmless' || (rule === 'later' && isNothing(member));
}

/** What a server elsewhere runs from is its address. */
function withImage(document: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { image, remote_url: elsewhere } = document;
  return isNothing(image) && !isNothing(elsewhere) ? { ...document, image: elsewhere } : document;
}

function renamed(document: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const members = Object.entries(document).map(([key, member]) => [
    aliases.get(key) ?? key,
    key === 'ignore_config' ? withSnakeCase(member) : member,
  ]);
  return Object.fromEntries(members) as Readonly<Record<string, unknown>>;
}

/** The document's keys and, dotted, those of the members that have rules of their own. */
function withMembers(document: Readonly<Record<string, unknown>>): [string, unknown][] {
  return Object.entries(document).flatMap(([key, member]): [string, unknown][] =>
    hasMembers(key) && isRecord(member)
      ? Object.entries(member).map(([inner, value]) => [`${key}.${inner}`, value])
      : [[key, member]],
  );
}

/** ToolHive writes `LoadGlobal` and `PrintOverlays`. */
function withSnakeCase(value: unknown): unknown {
  if (!isRecord(value)) return value;
  const snake = (key: string): string => key.replaceAll(/(?<=.)[A-Z]/g, '_$&').toLowerCase();
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [snake(key), member]));
}

function unknownKey(key: string, where: string, text: string): SkepError {
  const known = new Set(keys.flatMap((one) => [one, one.split('.')[0] ?? one]));
  const hint = suggestion(key, known, 'remove it, or correct its name');
  return invalidConfig(where, key.split('.'), 'unknown key', { text, hint });
}

/** Bytes of a request that a proxy takes by itself. */
const BODY_LIMIT = proxySettings.find((row) => row.name === 'bodyLimitBytes')?.default;

const step = shape.exactly({
  type: shape.text,
  parameters: shape.nullish(shape.recordOf(shape.anything)),
});

/** Steps that every request passes here too, with parameters that ask for no more. */
const ANYWAY: Readonly<Record<string, (name: string, value: unknown) => boolean>> = {
  recovery: nothing,
  'mcp-parser': nothing,
  // An empty guard is no guard.
  auth: (_name, value) => value === undefined || value === null,
  origin: nothing,
  bodylimit: (name, value) => name === 'max_bytes' && value === BODY_LIMIT,
};

/** What `middleware_configs` asks for beyond what Skep's own chain does anyway, by type. */
function stepsBeyond(value: unknown): readonly string[] {
  if (isNothing(value)) return [];
  return Array.isArray(value) ? value.flatMap((one) => stepBeyond(one) ?? []) : ['of the wrong shape'];
}

function stepBeyond(value: unknown): string | undefined {
  const data = shape.readAs(step, value);
  if (data === undefined) return 'of the wrong shape';
  const anyway = Object.hasOwn(ANYWAY, data.type) ? ANYWAY[data.type] : undefined;
  const met = Object.entries(data.parameters ?? {}).every(([name, member]) => anyway?.(name, member));
  return anyway !== undefined && met ? undefined : data.type;
}

function nothing(_name: string, value: unknown): boolean {
  return isNothing(value);
}

/** True for what asks for nothing. An empty object may: `"audit_config": {}` turns auditing on. */
function isNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === undefined || value === null || value === false || value === '' || value === 0;
}
