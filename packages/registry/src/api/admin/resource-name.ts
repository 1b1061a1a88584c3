import { label } from '../../shape/texts.ts';
import { badRequest, type Parameter, WORD } from '../route/parameter.ts';
import { segment } from '../route/path-parameters.ts';

/** Name of a source or registry in a path. Only new names have to have the form of one. */
export const resourceName: Parameter<string> = {
  description: 'Name of the source or registry',
  schema: WORD,
  parse: (text) => segment('name', text),
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
