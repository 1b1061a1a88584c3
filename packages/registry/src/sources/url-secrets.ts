import { redactUrl } from '@skep/core/log/redact.ts';

/**
 * The settings of a source (JSON text) as the store keeps them and the API shows them: http(s) addresses without the part
 * before `@` and without what their query says in secret. ssh addresses keep the user, which is no secret and part of the
 * address.
 */
export function withoutUrlSecrets(config: string): string {
  const value: unknown = JSON.parse(config);
  if (typeof value !== 'object' || value === null) return config;
  const members = Object.entries(value).map(([key, member]): [string, unknown] => [
    key,
    typeof member === 'string' && key !== 'data' ? withoutSecrets(member) : member,
  ]);
  const isSame = members.every(([key, member]) => member === Reflect.get(value, key));
  return isSame ? config : JSON.stringify(Object.fromEntries(members));
}

function withoutSecrets(text: string): string {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return text;
  const url = new URL(text);
  if (url.username === '' && url.password === '') return redactUrl(text);
  url.username = '';
  url.password = '';
  return redactUrl(url.href);
}
