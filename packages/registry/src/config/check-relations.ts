import type { PlainHttp } from '@skep/auth/token/issuer-fetch.ts';
import { draftOf } from '../shape/draft.ts';
import type { ConfigPath, Problem } from '../shape/problem.ts';
import { managedProblems, sourceProblems } from '../sources/source-body.ts';
import { authProblems } from './auth-relations.ts';
import { claimProblems } from './check-claims.ts';
import { configShape } from './shape.ts';

/**
 * Rules between members, checked as far as the members can be read. `plainHttp` says which http addresses of issuers are
 * accepted.
 */
export function checkRelations(value: unknown, plainHttp: PlainHttp = 'loopback'): Problem[] {
  const config = draftOf(configShape, value);
  if (config === undefined) return [];
  const sources = (config.sources ?? []).map((source) => source ?? {});
  const registries = (config.registries ?? []).map((registry) => registry ?? {});
  const names = new Set(sources.map(({ name }) => name));
  return [
    ...sources.flatMap((source, index) => sourceProblems(source, ['sources', index], 'file')),
    ...managedProblems(sources),
    ...repeatedNames(sources, 'sources', 'source'),
    ...repeatedNames(registries, 'registries', 'registry'),
    ...registries.flatMap(({ sources: linked = [] }, index) =>
      linkProblems(linked, names, ['registries', index, 'sources']),
    ),
    ...claimProblems(config),
    ...authProblems(config, plainHttp),
  ];
}

function repeatedNames(
  items: readonly { readonly name?: string | undefined }[],
  member: string,
  what: string,
): Problem[] {
  return items.flatMap(({ name = '' }, index) => {
    const again = name !== '' && items.findIndex((item) => item.name === name) < index;
    return again ? [{ path: [member, index, 'name'], message: `duplicate ${what} name "${name}"` }] : [];
  });
}

function linkProblems(
  linked: readonly (string | undefined)[],
  known: ReadonlySet<string | undefined>,
  list: ConfigPath,
): Problem[] {
  return linked.flatMap((source = '', position) => {
    const path = [...list, position];
    if (source === '') return [];
    if (!known.has(source)) return [{ path, message: `references unknown source "${source}"` }];
    return linked.indexOf(source) < position ? [{ path, message: `names the source "${source}" twice` }] : [];
  });
}
