import type { Endpoint } from '../supervisor/host.ts';

/** How a start ended, for people: the beginning of a sentence. */
export function whenReady(name: string, { readiness }: Endpoint): string {
  switch (readiness?.is) {
    case 'silent':
      return `${name} is running, but has not answered within a minute (skep status ${name} says when it has)`;
    case 'unchecked':
      return `${name} is running, and was not asked whether it answers`;
    default:
      return readiness?.server === undefined
        ? `${name} is running`
        : `${name} is running (${readiness.server})`;
  }
}
