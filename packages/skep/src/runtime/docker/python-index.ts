import { SkepError } from '@skep/core/errors/skep-error.ts';
import { withoutLogin } from '../npm/registries.ts';

/**
 * The package index that uv or pip is set to ("uv environment variables", "pip configuration"), as it may stand in a
 * build recipe: without what signs in to it. Undefined when none is set. Throws `config/invalid`.
 */
export function pythonIndex(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const name = env['UV_DEFAULT_INDEX'] ? 'UV_DEFAULT_INDEX' : 'PIP_INDEX_URL';
  const text = env[name];
  if (!text) return undefined;
  // uv lets an index have a name: `name=address`.
  const url = URL.parse(text.replace(/^[\w.-]+=/, ''));
  // The parser would leave line breaks out; here they are no part of an address but an attempt.
  if (url !== null && /^https?:$/.test(url.protocol) && !/[\r\n]/.test(text)) return withoutLogin(url);
  throw new SkepError('config/invalid', {
    message: `${name} is no http or https address`,
    hint: `correct or unset ${name}`,
  });
}
