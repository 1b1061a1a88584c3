import type { EntryIdentity, NewVersion, SourceSettings, StoredSource, SyncStatus } from '../rows.ts';

/** The tables as queries see them; migrations.ts makes them. Times are RFC 3339 UTC text, documents JSON text. */
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

export interface SourceTable extends Omit<SourceSettings, 'interval'> {
  name: string;
  creation_type: StoredSource['creationType'];
  /** Milliseconds. */
  sync_interval: number | null;
  /** 0 or 1. */
  orphaned: number;
  created_at: string;
  updated_at: string;
}

export interface RegistryTable {
  name: string;
  creation_type: StoredSource['creationType'];
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

export interface EntryTable extends EntryIdentity {
  source: string;
  claims: string;
}

export interface EntryVersionTable extends EntryIdentity, NewVersion {
  source: string;
  digest: string;
  created_at: string;
  updated_at: string;
}

export interface SyncStatusTable extends Pick<SyncStatus, 'phase' | 'message' | 'report'> {
  source: string;
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
