import { settingsOf } from '@skep/core/settings/define-settings.ts';
import * as shape from '@skep/core/settings/shape.ts';
import { isWorkloadName } from './workload-name.ts';

/** Names of what workloads can run on; `runtime/detect.ts` has a row for each. */
export const RUNTIME_KINDS = ['docker', 'sandbox'] as const;

export type RuntimeKind = (typeof RUNTIME_KINDS)[number];

/** Which engine a workload belongs to; another engine's workloads are left alone. */
const runtimeReference = shape.members({
  kind: shape.oneOf(...RUNTIME_KINDS),
  id: shape.text,
  endpoint: shape.text,
  shares_network: shape.optional(shape.text),
});

/** Who the workload is, and how the command behaves. */
export const identitySettings = settingsOf('Identity and lifecycle', [
  {
    kind: 'string',
    flag: 'name',
    placeholder: 'name',
    key: 'name',
    stored: shape.textThat(isWorkloadName, 'not a workload name'),
    brief: 'Name of the workload',
    defaultText: 'generated from the server',
  },
  {
    kind: 'string',
    flag: 'group',
    placeholder: 'group',
    key: 'group',
    stored: (value, fail) => shape.withDefault(shape.text, '')(value, fail) || 'default',
    brief: 'Group the workload belongs to',
    default: 'default',
  },
  {
    kind: 'path',
    flag: 'from-config',
    brief: 'Run from an exported configuration file',
    placeholder: 'file',
  },
  {
    kind: 'bool',
    flag: 'trust-config',
    brief: 'Grant what the file of --from-config asks of this machine',
    default: false,
    needs: ['fromConfig'],
  },
  {
    kind: 'bool',
    flag: 'no-check',
    key: 'no_check',
    sparse: true,
    brief: 'Do not wait for the first answer of the server, for one that needs long',
    default: false,
  },
  {
    kind: 'pairs',
    flag: 'label',
    short: 'l',
    key: 'container_labels',
    stored: shape.orEmpty(shape.recordOf(shape.text), {}),
    brief: 'Label of the container; repeatable',
    placeholder: 'key=value',
  },
  {
    kind: 'bool',
    flag: 'explain',
    brief: 'Print where each setting comes from, and start nothing',
    default: false,
  },
  {
    kind: 'bool',
    flag: 'foreground',
    short: 'f',
    brief: 'Stay attached; Ctrl-C removes the server, a killed command leaves it running',
    default: false,
  },
  {
    kind: 'bool',
    flag: 'debug',
    env: 'SKEP_DEBUG',
    key: 'debug',
    stored: shape.withDefault(shape.bool, false),
    brief: 'Log every step',
  },
  { name: 'help', kind: 'bool', flag: 'help', short: 'h', brief: 'Show this help' },
  {
    name: 'runtime',
    kind: 'choice',
    env: 'SKEP_RUNTIME',
    key: 'runtime',
    stored: shape.optional(runtimeReference),
    local: true,
    brief: 'Force what workloads run on',
    choices: [...RUNTIME_KINDS, 'kubernetes'],
    notYetValues: ['kubernetes'],
    defaultText: 'the first that works',
  },
]);
