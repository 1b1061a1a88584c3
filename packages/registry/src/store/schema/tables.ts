import type { CreationType } from '../../access/admin-scope.ts';
import type { EntryKind, SourceKind, SyncStatus } from '../rows.ts';

/** The tables as queries see them; migrations/ creates them. Times are RFC 3339 UTC text, documents JSON text. */
export interface Tables {
  source: SourceTable;
  registry: RegistryTable;
  registry_source: RegistrySourceTable;
  entry: EntryTable;
  entry_version: EntryVersionTable;
  sync_status: SyncStatusTable;
  sync_lease: SyncLeaseTable;
  store_state: StoreStateTable;
  change_log: ChangeLogTable;
  config_generation: ConfigGenerationTable;
  config_replica: ConfigReplicaTable;
}

export interface SourceTable {
  name: string;
  creation_type: CreationType;
  kind: SourceKind;
  config: string;
  format: string | null;
  filter: string | null;
  /** Milliseconds. */
  sync_interval: number | null;
  /** Canonical claims; the empty text is none. */
  claims: string;
  /** 0 or 1. */
  orphaned: number;
  created_at: string;
  updated_at: string;
}

export interface RegistryTable {
  name: string;
  creation_type: CreationType;
  claims: string;
  created_at: string;
  updated_at: string;
}

export interface RegistrySourceTable {
  registry: string;
  source: string;
  /** 0 is the highest priority. */
  position: number;
}

export interface EntryTable {
  source: string;
  kind: EntryKind;
  namespace: string;
  name: string;
  claims: string;
}

export interface EntryVersionTable {
  source: string;
  kind: EntryKind;
  namespace: string;
  name: string;
  version: string;
  title: string | null;
  description: string | null;
  document: string;
  official: string | null;
  digest: string;
  created_at: string;
  updated_at: string;
}

export interface SyncStatusTable {
  source: string;
  phase: SyncStatus['phase'];
  message: string;
  last_attempt: string | null;
  last_sync: string | null;
  last_success: string | null;
  next_sync: string | null;
  attempt_count: number;
  /** 0 or 1. */
  changed: number;
  servers: number;
  skills: number;
  plugins: number;
  content_hash: string | null;
  filter_hash: string | null;
  report: string | null;
}

export interface SyncLeaseTable {
  source: string;
  owner: string;
  /** Milliseconds since 1970. */
  expires_at: number;
}

/** One row, id 1. */
export interface StoreStateTable {
  id: number;
  revision: number;
  /** `change_log` holds every change after this revision. */
  changes_from: number;
}

/** A `source` or `registry` change names it in `name`; the other columns are empty then. */
export interface ChangeLogTable {
  revision: number;
  subject: 'source' | 'registry' | 'entry';
  source: string;
  kind: string;
  namespace: string;
  name: string;
}

/** Every configuration that was in force, by the order in which it came to be. */
export interface ConfigGenerationTable {
  hash: string;
  generation: number;
}

/** What a process was started with, or has reloaded. */
export interface ConfigReplicaTable {
  replica: string;
  hash: string;
  /** Milliseconds since 1970. */
  alive_until: number;
}
