export interface ObjectGroup {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
}

/** A kind of object that may be listed in the catalogue. */
export interface ObjectKind extends ObjectGroup {
  readonly kind: ObjectKindName;
  /** As in paths. */
  readonly plural: string;
  /** Everything that is read of it stands in its metadata, so the rest is not even asked for. */
  readonly isMetadataOnly: boolean;
}

export const OBJECT_KIND_NAMES = [
  'MCPServer',
  'VirtualMCPServer',
  'MCPRemoteProxy',
  'Service',
  'Deployment',
] as const;

export type ObjectKindName = (typeof OBJECT_KIND_NAMES)[number];

const CUSTOM = { group: 'toolhive.stacklok.dev', version: 'v1beta1' } as const;

/** Of objects with the same name in the same namespace the first kind counts. */
export const OBJECT_KINDS: readonly ObjectKind[] = [
  { kind: 'MCPServer', ...CUSTOM, plural: 'mcpservers', isMetadataOnly: false },
  { kind: 'VirtualMCPServer', ...CUSTOM, plural: 'virtualmcpservers', isMetadataOnly: true },
  { kind: 'MCPRemoteProxy', ...CUSTOM, plural: 'mcpremoteproxies', isMetadataOnly: true },
  { kind: 'Service', group: '', version: 'v1', plural: 'services', isMetadataOnly: true },
  { kind: 'Deployment', group: 'apps', version: 'v1', plural: 'deployments', isMetadataOnly: true },
];

/** Where a group and version is found below the address of the API server. */
export function groupPath({ group, version }: ObjectGroup): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`;
}

/** Where objects of a kind are listed; without a namespace, those of all. */
export function listPath(kind: ObjectKind, namespace: string | undefined): string {
  const below = namespace === undefined ? '' : `namespaces/${namespace}/`;
  return `${groupPath(kind)}/${below}${kind.plural}`;
}
