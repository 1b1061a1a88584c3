/**
 * The http or https address that a text spells, or undefined. `URL` alone repairs what people mistype into another
 * address: `https:///x` would be the host `x`.
 */
export function parseHttpUrl(text: string): URL | undefined {
  if (!/^https?:\/\/[^/\\?#]/i.test(text)) return undefined;
  return URL.parse(text) ?? undefined;
}

export const hasLogin = ({ username, password }: URL): boolean => username !== '' || password !== '';
