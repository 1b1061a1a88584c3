import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import * as shape from '@skep/core/settings/shape.ts';
import { DEFAULT_GROUP, isGroupName } from './group-name.ts';
import { MAX_TIMER_MS } from '@skep/core/time/clock.ts';
import { isWorkloadName } from './workload-name.ts';

/** Names of what workloads can run on; `runtime/detect.ts` has a row for each. */
export const RUNTIME_KINDS = ['docker', 'kubernetes', 'sandbox'] as const;

export type RuntimeKind = (typeof RUNTIME_KINDS)[number];

/** What a server elsewhere counts as: nothing of it runs here, so nobody has to look for it. */
export const ELSEWHERE = 'remote';

/** The runtime that it belongs to. */
export const NOWHERE_HERE = { kind: ELSEWHERE, id: ELSEWHERE, endpoint: '' } as const;

/** Runs packages of npm without any image. */
export const NEEDS_NO_IMAGES: RuntimeKind = 'sandbox';

/** Which engine a workload belongs to; another engine's workloads are left alone. */
export const runtimeReference = shape.members({
  kind: shape.oneOf(...RUNTIME_KINDS, ELSEWHERE),
  id: shape.text,
  endpoint: shape.text,
  narrow_network: shape.optional(shape.text),
  maps_users: shape.optional(shape.bool),
});

const groupName: shape.Shape<string> = (value, fail) => {
  const name = shape.withDefault(shape.text, '')(value, fail) || DEFAULT_GROUP;
  return isGroupName(name) ? name : fail('not a group name');
};

/** Who the workload is, and how the command behaves. */
export const identitySettings = settingsOf({ group: 'Identity and lifecycle' }, [
  flag('string', 'name', 'Name of the workload', {
    placeholder: 'name',
    key: 'name',
    stored: shape.textThat(isWorkloadName, 'not a workload name'),
    defaultText: 'generated from the server',
  }),
  flag('string', 'group', 'Group the workload belongs to', {
    placeholder: 'group',
    key: 'group',
    stored: groupName,
    offers: 'group',
    default: DEFAULT_GROUP,
  }),
  flag('path', 'from-config', 'Run from an exported configuration file', { placeholder: 'file' }),
  flag('bool', 'trust-config', 'Grant what the file of --from-config asks of this machine', {
    default: false,
    needs: ['fromConfig'],
  }),
  flag('bool', 'no-check', 'Do not ask the server whether it answers, for one that speaks oddly', {
    key: 'no_check',
    sparse: true,
    default: false,
  }),
  flag('duration', 'check-timeout', 'How long the server may take to answer for the first time', {
    env: 'SKEP_CHECK_TIMEOUT',
    key: 'check_timeout',
    sparse: true,
    default: 60_000,
    min: 1,
    max: MAX_TIMER_MS,
  }),
  flag('pairs', 'label', 'Label of the container; repeatable', {
    short: 'l',
    key: 'container_labels',
    stored: shape.orEmpty(shape.recordOf(shape.text), {}),
    placeholder: 'key=value',
    offers: 'label',
  }),
  flag('choice', 'runtime', 'What the server runs on', {
    env: 'SKEP_RUNTIME',
    key: 'runtime',
    stored: shape.optional(runtimeReference),
    local: true,
    choices: [...RUNTIME_KINDS],
    placeholder: 'kind',
    defaultText: 'the first that works',
  }),
  flag('bool', 'explain', 'Print where each setting comes from, and start nothing', { default: false }),
  flag('bool', 'foreground', 'Stay attached; Ctrl-C removes the server, a killed command leaves it running', {
    short: 'f',
    default: false,
  }),
  flag('bool', 'learn', 'Watch what the server does until Ctrl-C, and propose its least profile', {
    default: false,
  }),
  flag('path', 'learn-file', 'Where --learn writes the profile that it proposes', {
    placeholder: 'file',
    needs: ['learn'],
    defaultText: 'NAME.profile.json',
  }),
  flag('bool', 'debug', 'Log every step', {
    env: 'SKEP_DEBUG',
    key: 'debug',
    stored: shape.withDefault(shape.bool, false),
  }),
  flag('bool', 'help', 'Show this help', { short: 'h' }),
]);
