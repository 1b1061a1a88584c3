import path from 'node:path';
import type { RuntimeEnvironment } from '../environment.ts';
import { userFile } from '../user-file.ts';

/** What a person has set for npm, by key; a key of npm's list syntax (`key[]=`) has several values. */
export type NpmConfig = ReadonlyMap<string, readonly string[]>;

type Reading = Pick<RuntimeEnvironment, 'env' | 'home' | 'execPath' | 'loginFiles'>;

/**
 * The settings of npm that hold everywhere for this person: `npm_config_*` variables, their own `.npmrc`, the one of the
 * installation, in this order, with what is given beside them (npm "config", "npmrc"). A `.npmrc` of the working directory is not among them: whose
 * directory it is nobody knows. Fails with `config/unreadable`.
 */
export async function readNpmConfig(environment: Reading): Promise<NpmConfig> {
  const variables = fromEnvironment(environment.env);
  const named = (key: string) => variables.get(key)?.[0];
  const prefix = named('prefix') ?? path.dirname(path.dirname(environment.execPath));
  const files = [
    named('globalconfig') ?? path.join(prefix, 'etc/npmrc'),
    named('userconfig') ?? path.join(environment.home, '.npmrc'),
  ];
  const texts = [...(await Promise.all(files.map(userFile))), environment.loginFiles?.npmrc];
  return new Map([...texts.flatMap((text) => [...parseNpmrc(text ?? '', environment.env)]), ...variables]);
}

/** The value of a key that has one; of several the last counts. */
export function npmSetting(config: NpmConfig, key: string): string | undefined {
  return config.get(key)?.at(-1);
}

function fromEnvironment(env: Reading['env']): Map<string, readonly string[]> {
  const found = Object.entries(env).flatMap(([name, value]): [string, readonly string[]][] => {
    const key = /^npm_config_(.+)$/i.exec(name)?.[1];
    if (key === undefined || value === undefined || value === '') return [];
    // Keys that begin with an address are case-sensitive and may contain underscores.
    return [[key.startsWith('//') ? key : key.replaceAll(/(?!^)_/g, '-').toLowerCase(), [value]]];
  });
  return new Map(found);
}

/** The ini dialect of npm: `key = value`, `key[] = value`, comments, quotes, `${VARIABLE}` from the environment. */
export function parseNpmrc(text: string, env: Reading['env']): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const line of text.split(/\r?\n/).map((one) => one.trim())) {
    if (line === '' || /^[;#[]/.test(line)) continue;
    const at = line.indexOf('=');
    const name = expanded(unquoted(at === -1 ? line : line.slice(0, at).trim()), env);
    const value = at === -1 ? 'true' : expanded(unquoted(line.slice(at + 1).trim()), env);
    const list = name.endsWith('[]') ? name.slice(0, -2) : undefined;
    if (list === undefined) found.set(name, [value]);
    else found.set(list, [...(found.get(list) ?? []), value]);
  }
  return found;
}

function unquoted(text: string): string {
  if (/^".*"$/.test(text)) return fromJson(text);
  if (/^'.*'$/.test(text)) return text.slice(1, -1);
  // A comment may follow; a backslash makes its sign, or another backslash, an ordinary character.
  return text
    .replace(/(^|[^\\])[;#].*$/, '$1')
    .replaceAll(/\\([;#\\])/g, '$1')
    .trim();
}

function fromJson(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    return text.slice(1, -1);
  }
}

/** `${NAME}` stays as it is when there is no such variable; `${NAME?}` is empty then. */
function expanded(text: string, env: Reading['env']): string {
  return text.replaceAll(
    /\$\{([^}?]+)(\??)\}/g,
    (all, name: string, optional: string) => env[name] ?? (optional === '?' ? '' : all),
  );
}
