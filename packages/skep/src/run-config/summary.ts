import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import {
  exactly,
  listOf,
  members,
  noNul,
  oneOf,
  optional,
  recordOf,
  text,
  textThat,
  wholeNumber,
} from '@skep/core/settings/shape.ts';
import { ECOSYSTEMS } from '../protocol/reference.ts';
import { isGroupName } from '../settings/group-name.ts';
import type { RunConfig } from './run-config.ts';

/** What `list` shows of a run configuration. */
export type RunSummary = Pick<
  RunConfig,
  | 'name'
  | 'image'
  | 'package'
  | 'remote_url'
  | 'transport'
  | 'proxy_mode'
  | 'host'
  | 'port'
  | 'group'
  | 'registry_server_name'
  | 'container_labels'
  | 'tools_filter'
>;

const MAX_PORT = 65_535;
const notEmpty = textThat((value) => value !== '' && !value.includes('\0'), 'is no name');

/** As `encodeRunConfig` writes them: every member with a default is there. */
const summaryShape = members({
  schema_version: textThat((version) => version.startsWith('v0.'), 'is another'),
  name: text,
  image: notEmpty,
  package: optional(
    exactly({
      kind: oneOf('package'),
      ecosystem: oneOf(...ECOSYSTEMS),
      name: notEmpty,
      version: optional(noNul),
      directory: optional(noNul),
    }),
  ),
  remote_url: optional(noNul),
  transport: oneOf('stdio', 'sse', 'streamable-http'),
  proxy_mode: oneOf('streamable-http', 'sse'),
  host: oneOf('127.0.0.1', '0.0.0.0'),
  port: wholeNumber(0, MAX_PORT),
  group: textThat(isGroupName, 'is no group'),
  registry_server_name: optional(text),
  container_labels: recordOf(text),
  tools_filter: optional(listOf(noNul)),
});

function refuse(): never {
  throw new SkepError('run/invalid-config');
}

/**
 * What `list` shows of a saved configuration, without the table of settings: loading that takes longer than listing a
 * hundred workloads. Undefined for what is not as this release usually writes it, which `decodeRunConfig` judges. What
 * `list` does not show is not looked at.
 */
export function summaryOf(value: unknown, name: string): RunSummary | undefined {
  try {
    const { schema_version: _version, ...summary } = summaryShape(value, refuse);
    const { transport, proxy_mode } = summary;
    const isUsual = summary.name === name && (transport === 'stdio' || transport === proxy_mode);
    return isUsual ? summary : undefined;
  } catch (error) {
    if (hasCode(error, 'run/invalid-config')) return undefined;
    throw error;
  }
}
