import { hasCode } from '@skep/core/errors/skep-error.ts';

const CODES = ['runtime/engine-unreachable', 'runtime/unavailable', 'supervisor/unreachable'] as const;

/** True for a failure after which nothing is known of the workload, and it may be well again by itself. */
export const isUnreachable = (error: unknown): boolean => CODES.some((code) => hasCode(error, code));
