import { SkepError } from '@skep/core/errors/skep-error.ts';
import { notFetched } from '../gateway/failure.ts';

/** No proxy has a module with that package, or no such version of it. */
export function packageMissing(specifier: string): SkepError {
  return new SkepError('runtime/package-not-found', {
    message: `package "${specifier}" was not found in the Go module proxies`,
  });
}

/** What the person's settings say to take from a repository: nothing of the kind is fetched outside a container. */
export function notFromProxy(modulePath: string): SkepError {
  return new SkepError('runtime/prefetch-failed', {
    message: `module "${modulePath}" is private by GONOPROXY or GOPRIVATE, and no module proxy is asked for it`,
    hint: 'run an image of it; the sandbox takes modules from proxies, and none from repositories',
  });
}

/** Turns what Go says into an error: its own lines, without the names of packages that it was building. */
export function goFailure(specifier: string, output: string, address: string): SkepError {
  const lines = output
    .split('\n')
    .map((line) => line.trim().replaceAll(address, ''))
    .filter((line) => line !== '' && !/^[\w./~-]+$/.test(line) && !line.startsWith('go: downloading '));
  return notFetched(specifier, lines.slice(0, 3).join('; ') || 'Go gave no reason');
}
