import { z } from 'zod';
import type { SourceKind } from '../store/rows.ts';
import { apiKind } from './api/api-source.ts';
import { fileKind } from './file/file-kind.ts';
import { gitKind } from './git/git-source.ts';
import { kubernetesKind } from './kubernetes/kubernetes-kind.ts';
import { sourceKind, type SourceKindRow } from './kind.ts';

/** Every kind of source, in the order in which messages name them. Their names, and how they get entries: `store/rows.ts`. */
export const KINDS: Readonly<Record<SourceKind, SourceKindRow>> = {
  git: gitKind,
  api: apiKind,
  file: fileKind,
  managed: sourceKind({
    shape: z.strictObject({}),
    brief: 'what is published through the API; at most one source',
  }),
  kubernetes: kubernetesKind,
};
