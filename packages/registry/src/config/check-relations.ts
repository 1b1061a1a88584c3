import { z } from 'zod';
import { managedProblems, sourceDraft, sourceProblems } from './check-sources.ts';
import type { Problem } from '../shape/problem.ts';

// Reads what is readable and takes anything else as absent: the shape has reported that already.
const name = z.string().catch('');
const draft = z
  .looseObject({
    sources: z.array(sourceDraft).catch([]),
    registries: z
      .array(z.looseObject({ name, sources: z.array(name).catch([]) }).catch({ name: '', sources: [] }))
      .catch([]),
  })
  .catch({ sources: [], registries: [] });

type Draft = z.infer<typeof draft>;

/** Rules between members (specification §1.3.9), checked as far as the members can be read. */
export function checkRelations(value: unknown): Problem[] {
  const config = draft.parse(value);
  return [
    ...config.sources.flatMap((source, index) => sourceProblems(source, ['sources', index], 'file')),
    ...managedProblems(config.sources),
    ...repeated(config.sources, 'sources', 'source'),
    ...repeated(config.registries, 'registries', 'registry'),
    ...config.registries.flatMap((registry, index) => linkProblems(config, registry.sources, index)),
  ];
}

function repeated(items: readonly { readonly name: string }[], member: string, what: string): Problem[] {
  return items.flatMap(({ name }, index) => {
    const again = name !== '' && items.findIndex((item) => item.name === name) < index;
    return again ? [{ path: [member, index, 'name'], message: `duplicate ${what} name "${name}"` }] : [];
  });
}

function linkProblems(config: Draft, sources: readonly string[], index: number): Problem[] {
  const known = new Set(config.sources.map((source) => source.name));
  return sources.flatMap((source, position) => {
    const path = ['registries', index, 'sources', position];
    if (source === '') return [];
    if (!known.has(source)) return [{ path, message: `references unknown source "${source}"` }];
    return sources.indexOf(source) < position
      ? [{ path, message: `names the source "${source}" twice` }]
      : [];
  });
}
