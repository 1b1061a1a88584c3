import { label } from '../../config/texts.ts';
import { badRequest, type Parameter } from '../parameter.ts';

/** Name of a source or registry in a path. Only new names have to have the form of one. */
export const resourceName: Parameter<string> = {
  description: 'Name of the source or registry',
  schema: { type: 'string' },
  parse: (text) => {
    if (text === undefined || text.trim() === '') throw badRequest('name cannot be empty');
    if (/\s/.test(text)) throw badRequest('name cannot contain whitespace');
    return text;
  },
};

/** Fails with `registry/bad-request` for a name that nothing new may have. */
export function requireNewName(
  what: 'source' | 'registry',
  name: string,
  reserved?: ReadonlySet<string>,
): void {
  const [issue] = label.safeParse(name).error?.issues ?? [];
  if (issue !== undefined) throw badRequest(`invalid ${what} name: ${issue.message}`);
  if (reserved?.has(name)) throw badRequest(`invalid ${what} name: ${name} is a reserved word`);
}
