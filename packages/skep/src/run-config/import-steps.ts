import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '@skep/core/json/is-record.ts';

type Document = Readonly<Record<string, unknown>>;

/** A step of `middleware_configs`, and the keys of a run configuration that say the same. */
interface StepRow {
  readonly types: readonly string[];
  /** Parameter to key. */
  readonly keys: Readonly<Record<string, string>>;
  /** Parameters that repeat what the workload is. */
  readonly facts?: readonly string[];
  /** It guards something, so one that says nothing is not understood. */
  readonly guards?: true;
  /** The key that is there, if empty, for a step that says nothing. */
  readonly on?: string;
}

const STEPS: readonly StepRow[] = [
  {
    types: ['tool-filter', 'tool-call-filter'],
    keys: { filter_tools: 'tools_filter', tools_override: 'tools_override' },
  },
  {
    types: ['authorization'],
    keys: { config_data: 'authz_config', config_path: 'authz_config_path' },
    guards: true,
  },
  {
    types: ['audit'],
    keys: { config_data: 'audit_config', config_path: 'audit_config_path' },
    facts: ['component', 'transport_type'],
    on: 'audit_config',
  },
  { types: ['telemetry'], keys: { config: 'telemetry_config' }, facts: ['server_name', 'transport'] },
  {
    types: ['ratelimit'],
    keys: { config: 'rate_limit_config', namespace: 'rate_limit_namespace' },
    facts: ['server_name'],
    guards: true,
  },
  {
    types: ['validating-webhook'],
    keys: { webhooks: 'validating_webhooks' },
    facts: ['server_name', 'transport'],
  },
  {
    types: ['mutating-webhook'],
    keys: { webhooks: 'mutating_webhooks' },
    facts: ['server_name', 'transport'],
  },
  { types: ['tokenexchange'], keys: { token_exchange_config: 'token_exchange_config' }, guards: true },
];

/**
 * A document with what its list of steps says under the keys that Skep has for it. A step that contradicts a key, or says
 * more than Skep knows, stays in the list, so that it is refused.
 */
export function withSteps(document: Document): Document {
  const { middleware_configs: steps } = document;
  if (!Array.isArray(steps)) return document;
  const left: unknown[] = [];
  let taken = document;
  for (const step of steps) {
    const said = saidBy(step);
    const agrees = said?.every(
      ([key, value]) =>
        (isNone(taken[key]) && !isGuarded(step, taken)) ||
        isNone(value) ||
        isDeepStrictEqual(taken[key], value),
    );
    const forwarding = withHeaders(step, taken);
    if (said && agrees) taken = { ...taken, ...withoutEmpty(said, taken) };
    else if (forwarding) taken = forwarding;
    else left.push(step);
  }
  return left.length === steps.length ? document : { ...taken, middleware_configs: left };
}

/** With the headers of a step `header-forward`; undefined for any other, and where the document says others in clear. */
function withHeaders(step: unknown, document: Document): Document | undefined {
  if (!isRecord(step) || step['type'] !== 'header-forward') return undefined;
  const { type: _type, parameters = {}, ...more } = step;
  const { header_forward: said = {} } = document;
  if (!isRecord(parameters) || !isRecord(said)) return undefined;
  const { add_headers: headers, ...others } = parameters;
  const { add_plaintext_headers: plain } = said;
  const agrees = isNone(plain) || isNone(headers) || isDeepStrictEqual(plain, headers);
  if (!agrees || Object.keys({ ...more, ...others }).length > 0) return undefined;
  if (isNone(headers)) return document;
  return { ...document, header_forward: { ...said, add_plaintext_headers: headers } };
}

/** An empty value says that there is something, and takes the place of nothing else. */
function withoutEmpty(said: readonly (readonly [string, unknown])[], taken: Document): Document {
  return Object.fromEntries(said.filter(([key, value]) => !isNone(value) || isNone(taken[key])));
}

const rowOf = (type: unknown): StepRow | undefined => STEPS.find(({ types }) => types.includes(String(type)));

/** True where something else guards already what a step guards: of two sources one would be dropped. */
function isGuarded(step: unknown, taken: Document): boolean {
  const row = isRecord(step) ? rowOf(step['type']) : undefined;
  return row?.guards === true && Object.values(row.keys).some((key) => !isNone(taken[key]));
}

/** What a step says, by key; undefined for one that Skep does not know. */
function saidBy(step: unknown): readonly (readonly [string, unknown])[] | undefined {
  if (!isRecord(step) || !Object.keys(step).every((key) => key === 'type' || key === 'parameters'))
    return undefined;
  const row = rowOf(step['type']);
  const parameters = step['parameters'] ?? {};
  if (row === undefined || !isRecord(parameters)) return undefined;
  const { keys, facts = [], guards = false, on } = row;
  const given = Object.entries(parameters).filter(([name, value]) => !facts.includes(name) && !isNone(value));
  if (!given.every(([name]) => Object.hasOwn(keys, name)) || (guards && given.length === 0)) return undefined;
  if (given.length === 0 && on !== undefined) return [[on, {}]];
  return given.map(([name, value]) => [keys[name] ?? name, value]);
}

function isNone(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  if (isRecord(value)) return Object.keys(value).length === 0;
  return value === undefined || value === null || value === '';
}
