import type { Format } from '@skep/core/terminal/paint.ts';
import type { WorkloadView } from './view.ts';

const LOOKS: Readonly<Record<WorkloadView['status'], Format>> = {
  running: 'green',
  starting: 'yellow',
  unhealthy: 'yellow',
  stopping: 'yellow',
  removing: 'yellow',
  stopped: 'dim',
  error: 'red',
  unknown: 'red',
};
const FORMATS: ReadonlyMap<string, Format> = new Map(Object.entries(LOOKS));

/** How a status looks where there are colours. */
export function formatOfStatus(status: string): Format | undefined {
  return FORMATS.get(status);
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
