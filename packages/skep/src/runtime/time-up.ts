/** True when a time limit (`AbortSignal.timeout`) has aborted the signal, and nobody who does not want to wait any more. */
export function isTimeUp({ reason }: Pick<AbortSignal, 'reason'>): boolean {
  return reason instanceof DOMException && reason.name === 'TimeoutError';
}
