import { formatDuration, parseDuration } from '@skep/core/time/duration.ts';
import type { RunConfig } from './run-config.ts';

const DEFAULT_MS = 60_000;

/** What a run or a start was given, as it is saved; nothing where nothing was given. */
export const withRequestTimeout = (milliseconds: number | undefined): Pick<RunConfig, 'request_timeout'> =>
  milliseconds === undefined ? {} : { request_timeout: formatDuration(milliseconds) };

/** Milliseconds that a call of this workload may go without an answer or progress. */
export const requestTimeoutMs = ({ request_timeout: saved }: Pick<RunConfig, 'request_timeout'>): number =>
  saved === undefined ? DEFAULT_MS : parseDuration(saved);
