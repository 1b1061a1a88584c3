import type { NamedRegistry, NamedSource } from './rows.ts';

/** Sources and registries of the configuration file. */
export interface DesiredState {
  readonly sources: readonly NamedSource[];
  readonly registries: readonly NamedRegistry[];
}

export interface NameChanges {
  readonly created: readonly string[];
  readonly updated: readonly string[];
  readonly deleted: readonly string[];
}

export interface BlockedSource {
  readonly source: string;
  /** Those made through the API that list it. */
  readonly registries: readonly string[];
}

export interface ReconcileReport {
  /** False when another process runs with a newer configuration: then nothing was changed. */
  readonly inForce: boolean;
  readonly sources: NameChanges;
  readonly registries: NameChanges;
  /** Sources that left the file and stay, flagged as orphaned, because registries made through the API list them. */
  readonly blocked: readonly BlockedSource[];
}

// Settings as text: equal texts are equal settings.

export function sourceText({ kind, config, format, filter, interval, claims }: NamedSource): string {
  return JSON.stringify([kind, config, format, filter, interval, claims]);
}

export function registryText({ sources, claims }: NamedRegistry): string {
  return JSON.stringify([sources, claims]);
}
