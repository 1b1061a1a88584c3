import { lstat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import type { Field, FieldKind, Settings } from '@skep/core/settings/field.ts';
import { showValue } from '@skep/core/settings/show-value.ts';
import { runSettings } from '../settings/run-settings.ts';
import type { Learning } from './plan.ts';
import type { RunRequest } from './planned-run.ts';

/** The request with what watches connections: `--learn` isolates. Fails with `usage/conflict` where that is forbidden. */
export function isolateToLearn(request: RunRequest): RunRequest {
  const { values, settings } = request;
  if (!values.learn) return request;
  const given = settings.get('isolateNetwork');
  if (given?.origin === 'flag' && !values.isolateNetwork) {
    throw new SkepError('usage/conflict', {
      message:
        '--learn watches what a gateway lets through, so it cannot be used with --isolate-network=false',
      hint: 'leave out --isolate-network=false',
    });
  }
  const isolateNetwork = { value: true, origin: 'flag', place: '--learn' } as const;
  return {
    ...request,
    values: { ...values, isolateNetwork: true },
    settings: new Map([...settings, ['isolateNetwork', isolateNetwork]]),
  };
}

/** What the permission profile says from then on, or what belongs to learning alone. */
const REPLACED: ReadonlySet<string> = new Set([
  'learn',
  'learnFile',
  'foreground',
  'debug',
  'isolateNetwork',
  'permissionProfile',
  'volume',
]);
const SHOWN: ReadonlySet<FieldKind> = new Set<FieldKind>(['string', 'choice', 'int', 'bool', 'duration']);

/** What is done with what is learned. Fails with `usage/conflict` where its file is there: nothing is overwritten. */
export async function planLearning(
  name: string,
  { target, values, settings, args = [] }: RunRequest,
  cwd: string,
): Promise<Learning> {
  const given = values.learnFile ?? `${name}.profile.json`;
  const file = resolve(cwd, given);
  if ((await ifThere(lstat(file))) !== undefined) throw fileIsThere(file);
  const { words, repeat } = givenAgain(settings);
  return { file, again: { words: [target, ...words], args }, repeat };
}

export function fileIsThere(file: string): SkepError {
  return new SkepError('usage/conflict', {
    message: `"${file}", where --learn would write the profile that it proposes, is there already`,
    hint: 'name another with --learn-file, or remove it',
  });
}

/** The flags of a run that mean the same in the next one; those that may hold a secret by name alone. */
function givenAgain(settings: Settings): Pick<Learning, 'repeat'> & { readonly words: readonly string[] } {
  const rows: readonly Field[] = runSettings;
  const words: string[] = [];
  const repeat: string[] = [];
  for (const row of rows) {
    const setting = settings.get(row.name);
    if (setting?.origin !== 'flag' || row.flag === undefined || REPLACED.has(row.name)) continue;
    if (!SHOWN.has(row.kind) || row.secret === true) repeat.push(`--${row.flag}`);
    else words.push(`--${row.flag}=${showValue(row, setting.value)}`);
  }
  return { words, repeat };
}
