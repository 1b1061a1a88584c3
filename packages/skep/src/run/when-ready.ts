import type { Endpoint } from '../supervisor/host.ts';

/** How a start ended, for people: the beginning of a sentence. */
export function whenReady(name: string, { readiness }: Endpoint): string {
  const running = `${name} is running`;
  if (readiness?.is === 'silent')
    return `${running}, but has not answered within a minute (skep status ${name} says when it has)`;
  if (readiness?.is === 'unchecked') return `${running}, and was not asked whether it answers`;
  return readiness?.server === undefined ? running : `${running} (${readiness.server})`;
}
