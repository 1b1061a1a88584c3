import { SkepError } from '@skep/core/errors/skep-error.ts';
import { checkShape } from '../shape/check-shape.ts';
import { filterShape } from '../config/source-shape.ts';
import type { StoredSource } from '../store/rows.ts';
import type { FilterConfig, FilterRule } from '../sources/filter/filter.ts';

/** The filter of a source as the store keeps it. Fails with `config/invalid` when it is none. */
export function filterOf({ name, filter }: Pick<StoredSource, 'name' | 'filter'>): FilterConfig | undefined {
  if (filter === null) return undefined;
  const checked = checkShape(filterShape, JSON.parse(filter));
  if (!('data' in checked)) {
    const message = checked.problems.map((problem) => problem.message).join('; ');
    throw new SkepError('config/invalid', { message: `source "${name}": filter: ${message}` });
  }
  const { names, tags } = checked.data;
  return {
    ...(names === undefined ? {} : { names: ruleOf(names) }),
    ...(tags === undefined ? {} : { tags: ruleOf(tags) }),
  };
}

function ruleOf({
  include,
  exclude,
}: {
  include?: string[] | undefined;
  exclude?: string[] | undefined;
}): FilterRule {
  return {
    ...(include === undefined ? {} : { include }),
    ...(exclude === undefined ? {} : { exclude }),
  };
}
