import { SkepError } from '@skep/core/errors/skep-error.ts';
import { z } from 'zod';
import type { RuntimeEnvironment } from '../environment.ts';
import type { PackageSource } from '../runtime.ts';
import { runNpm, type NpmProgram } from './program.ts';

export interface ResolveRequest {
  readonly source: PackageSource;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
}

/**
 * Asks the registry which exact version a tag, range or bare name means today. Throws `runtime/package-not-found`, or
 * `runtime/prefetch-failed` when the registry does not answer.
 */
export async function resolveNpmVersion(
  npm: NpmProgram,
  environment: RuntimeEnvironment,
  request: ResolveRequest,
): Promise<string> {
  const specifier = npmSpecifier(request.source);
  const result = await runNpm(npm, environment, {
    args: ['view', '--json', '--', specifier, 'version'],
    cwd: request.cwd,
    env: request.env,
    onLine: () => {},
    signal: request.signal,
  });
  const version = lastVersion(result.stdout);
  if (result.status === 0 && version !== undefined) return version;
  throw npmFailure(specifier, toldAsJson(result.stdout) ?? `${result.stdout}\n${result.stderr}`);
}

const failureShape = z.object({
  error: z.object({ code: z.string().default(''), summary: z.string().min(1) }),
});

/** With `--json` npm says on stdout what went wrong; undefined when it said something else. */
function toldAsJson(stdout: string): string | undefined {
  const text = stdout.trim();
  if (!text.startsWith('{')) return undefined;
  const told = failureShape.safeParse(JSON.parse(text));
  return told.success ? `${told.data.error.code} ${told.data.error.summary}` : undefined;
}

/** `name` or `name@version`, as one argument for npm. */
export function npmSpecifier(source: PackageSource): string {
  return source.version === undefined ? source.name : `${source.name}@${source.version}`;
}

/** Turns npm's complaint into an error: missing package or version, else npm's first lines. */
export function npmFailure(specifier: string, output: string): SkepError {
  if (isMissingPackage(output) || output.trim() === '') {
    return new SkepError('runtime/package-not-found', {
      message: `package "${specifier}" was not found in the npm registry`,
    });
  }
  const said = npmComplaint(output);
  return new SkepError('runtime/prefetch-failed', {
    message: `package "${specifier}" could not be fetched: ${said}`,
  });
}

/** True for npm's answers to a name or version the registry does not have. */
export function isMissingPackage(output: string): boolean {
  return /\bE404\b|\bETARGET\b|404 Not Found/.test(output);
}

/** The part of npm's output a person wants: its error lines without prefix, the log-file hint dropped. */
export function npmComplaint(output: string): string {
  const lines = output
    .split('\n')
    .map((line) => line.replace(/^npm (?:error|ERR!)\s?/, '').trim())
    .filter((line) => line !== '' && !line.startsWith('A complete log'));
  return lines.slice(0, 3).join('; ') || 'npm gave no reason';
}

/** `npm view` prints one version, or for a range all matching ones in ascending order. */
function lastVersion(stdout: string): string | undefined {
  const text = stdout.trim();
  if (!text.startsWith('"') && !text.startsWith('[')) return undefined;
  const value: unknown = JSON.parse(text);
  const last: unknown = Array.isArray(value) ? value.at(-1) : value;
  return typeof last === 'string' ? last : undefined;
}
