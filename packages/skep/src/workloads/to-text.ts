import type { Format } from '@skep/core/terminal/paint.ts';
import type { WorkloadView } from './view.ts';

const LOOKS: Readonly<Record<WorkloadView['status'], Format>> = {
  running: 'green',
  starting: 'yellow',
  unhealthy: 'yellow',
  unauthenticated: 'yellow',
  auth_retrying: 'yellow',
  stopping: 'yellow',
  removing: 'yellow',
  stopped: 'dim',
  policy_stopped: 'red',
  error: 'red',
  unknown: 'red',
};
/** Stands before a status that somebody else than its person has decided. */
const ICONS: Partial<Record<WorkloadView['status'], string>> = {
  policy_stopped: '⊘',
  unauthenticated: '⚠',
  auth_retrying: '⚠',
};

/** A status as tables show it. */
export function statusText(status: WorkloadView['status']): string {
  const icon = ICONS[status];
  return icon === undefined ? status : `${icon} ${status}`;
}

const FORMATS: ReadonlyMap<string, Format> = new Map(
  (Object.keys(LOOKS) as WorkloadView['status'][]).map((one) => [statusText(one), LOOKS[one]]),
);

/** A package as a narrow table shows it: the tag, which says more to a person, and the beginning of a digest. */
export function shortPackage(name: string): string {
  return name.replace(/(@sha256:[0-9a-f]{12})[0-9a-f]{52}$/, '$1');
}

/** How what `statusText` says looks where there are colours. */
export function formatOfStatus(text: string): Format | undefined {
  return FORMATS.get(text);
}

/** `2026-01-02 03:04:05`, in UTC. */
export function timeText(time: Date | undefined): string {
  return time?.toISOString().replace('T', ' ').slice(0, 19) ?? '';
}

const UNITS = [
  { name: 'd', seconds: 86_400 },
  { name: 'h', seconds: 3600 },
  { name: 'm', seconds: 60 },
];

/** How long ago that was, in its largest unit: `3d`, `4h`, `12m`, `59s`. */
export function ageText(time: Date | undefined, now: Date): string {
  if (time === undefined) return '';
  const seconds = Math.max(0, Math.floor((now.getTime() - time.getTime()) / 1000));
  const unit = UNITS.find((one) => seconds >= one.seconds) ?? { name: 's', seconds: 1 };
  return `${Math.floor(seconds / unit.seconds)}${unit.name}`;
}
