/** What a person has set for npm and that also holds for a build elsewhere. */
export interface NpmSettingSources {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Text of the user's `.npmrc`; absent when there is none. */
  readonly npmrc?: string;
}

/**
 * The registry address npm would use: `npm_config_registry` in any case, else `registry=` of the user's file (npm
 * "config", order of precedence). Undefined means npm's own default. Logins inside the address are dropped, and tokens
 * of the file are never read.
 */
export function npmRegistry(sources: NpmSettingSources): string | undefined {
  const variable = Object.entries(sources.env).find(
    ([key]) => key.toLowerCase() === 'npm_config_registry',
  )?.[1];
  const line = /^[ \t]*registry[ \t]*=[ \t]*"?([^"\s]+)"?[ \t]*$/m.exec(sources.npmrc ?? '')?.[1];
  const text = variable || line;
  if (!text || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return undefined;
  url.username = '';
  url.password = '';
  return url.href;
}
