/** How one database spells what the statements of a migration need. */
export interface SqlWords {
  /** Text that compares bytewise. */
  readonly text: string;
  /** At least 53 bits. */
  readonly integer: string;
  /** What stands after the closing parenthesis of a table. */
  readonly tableEnd: string;
}

export const SQLITE_WORDS: SqlWords = { text: 'text', integer: 'integer', tableEnd: 'strict' };
export const POSTGRES_WORDS: SqlWords = { text: 'text collate "C"', integer: 'bigint', tableEnd: '' };

/**
 * Statements that lead from the schema before to this one, and back. A migration only adds (expand): columns are nullable
 * or have defaults, so that programs of `compatibleFrom` and later go on working while replicas are replaced. What nobody
 * reads any more is dropped a release later (contract), with a higher `compatibleFrom`.
 */
interface Migration {
  /** Number of the oldest schema whose programs work with this one. */
  readonly compatibleFrom: number;
  readonly up: (words: SqlWords) => readonly string[];
  readonly down: (words: SqlWords) => readonly string[];
}

/** Natural keys, because callers ask by the whole identity. A source takes its entries along, an entry its versions. */
const sourcesAndEntries: Migration = {
  compatibleFrom: 1,
  up: ({ text, tableEnd }) => [
    `create table source (
       name ${text} primary key,
       content_hash ${text},
       synced_at ${text},
       report ${text}
     ) ${tableEnd}`,
    `create table entry (
       source ${text} not null references source (name) on delete cascade,
       kind ${text} not null check (kind in ('server', 'skill', 'plugin')),
       namespace ${text} not null,
       name ${text} not null,
       claims ${text} not null,
       primary key (source, kind, namespace, name)
     ) ${tableEnd}`,
    `create table entry_version (
       source ${text} not null,
       kind ${text} not null,
       namespace ${text} not null,
       name ${text} not null,
       version ${text} not null,
       title ${text},
       description ${text},
       document ${text} not null,
       official ${text},
       digest ${text} not null,
       created_at ${text} not null,
       updated_at ${text} not null,
       primary key (source, kind, namespace, name, version),
       foreign key (source, kind, namespace, name)
         references entry (source, kind, namespace, name) on delete cascade
     ) ${tableEnd}`,
  ],
  down: () => ['drop table entry_version', 'drop table entry', 'drop table source'],
};

/**
 * Who may do what, how sources are doing, and what changed when. The columns of `source` that hold the last
 * synchronisation stay for programs of schema 1; `sync_status` takes their place.
 */
const governance: Migration = {
  compatibleFrom: 1,
  up: (words) => [
    ...sourceColumns(words).map((column) => `alter table source add column ${column}`),
    ...governanceTables(words),
    ...revisionTables(words),
  ],
  down: (words) => [
    ...['change_log', 'store_state', 'sync_lease', 'sync_status', 'registry_source', 'registry'].map(
      (table) => `drop table ${table}`,
    ),
    'drop index source_managed',
    ...sourceColumns(words).map(
      (column) => `alter table source drop column ${column.slice(0, column.indexOf(' '))}`,
    ),
  ],
};

function sourceColumns({ text, integer }: SqlWords): string[] {
  return [
    `creation_type ${text} not null default 'CONFIG' check (creation_type in ('CONFIG', 'API'))`,
    `kind ${text} not null default 'file' check (kind in ('git', 'api', 'file', 'managed', 'kubernetes'))`,
    `config ${text} not null default '{}'`,
    `format ${text}`,
    `filter ${text}`,
    `sync_interval ${integer}`,
    `claims ${text} not null default ''`,
    `orphaned ${integer} not null default 0`,
    `created_at ${text} not null default '1970-01-01T00:00:00.000Z'`,
    `updated_at ${text} not null default '1970-01-01T00:00:00.000Z'`,
  ];
}

function governanceTables({ text, integer, tableEnd }: SqlWords): string[] {
  return [
    `create unique index source_managed on source (kind) where kind = 'managed'`,
    `create table registry (
       name ${text} primary key,
       creation_type ${text} not null check (creation_type in ('CONFIG', 'API')),
       claims ${text} not null,
       created_at ${text} not null,
       updated_at ${text} not null
     ) ${tableEnd}`,
    `create table registry_source (
       registry ${text} not null references registry (name) on delete cascade,
       source ${text} not null references source (name) on delete restrict,
       position ${integer} not null,
       primary key (registry, source)
     ) ${tableEnd}`,
    `create index registry_source_source on registry_source (source)`,
    `create table sync_status (
       source ${text} primary key references source (name) on delete cascade,
       phase ${text} not null check (phase in ('syncing', 'complete', 'failed')),
       message ${text} not null,
       last_attempt ${text},
       last_sync ${text},
       last_success ${text},
       next_sync ${text},
       attempt_count ${integer} not null,
       changed ${integer} not null,
       servers ${integer} not null,
       skills ${integer} not null,
       plugins ${integer} not null,
       content_hash ${text},
       filter_hash ${text},
       report ${text}
     ) ${tableEnd}`,
    `insert into sync_status
       select name, 'complete', 'Sync completed successfully', synced_at, synced_at, synced_at, null, 0, 0,
         (select count(*) from entry e where e.source = s.name and e.kind = 'server'),
         (select count(*) from entry e where e.source = s.name and e.kind = 'skill'),
         (select count(*) from entry e where e.source = s.name and e.kind = 'plugin'),
         content_hash, null, report
       from source s where content_hash is not null`,
    `create table sync_lease (
       source ${text} primary key,
       owner ${text} not null,
       expires_at ${integer} not null
     ) ${tableEnd}`,
  ];
}

function revisionTables({ text, integer, tableEnd }: SqlWords): string[] {
  return [
    `create table store_state (
       id ${integer} primary key check (id = 1),
       revision ${integer} not null,
       changes_from ${integer} not null
     ) ${tableEnd}`,
    `insert into store_state (id, revision, changes_from) values (1, 1, 1)`,
    `create table change_log (
       revision ${integer} not null,
       subject ${text} not null check (subject in ('source', 'registry', 'entry')),
       source ${text} not null,
       kind ${text} not null,
       namespace ${text} not null,
       name ${text} not null
     ) ${tableEnd}`,
    `create index change_log_revision on change_log (revision)`,
  ];
}

/** Which configurations there have been, in which order, and which of them running processes have. */
const configurations: Migration = {
  compatibleFrom: 1,
  up: ({ text, integer, tableEnd }) => [
    `create table config_generation (
       hash ${text} primary key,
       generation ${integer} not null
     ) ${tableEnd}`,
    `create table config_replica (
       replica ${text} primary key,
       hash ${text} not null,
       alive_until ${integer} not null
     ) ${tableEnd}`,
  ],
  down: () => ['drop table config_replica', 'drop table config_generation'],
};

/** In order; the number of a migration is its position, counted from 1. Only ever append. */
export const MIGRATIONS: readonly Migration[] = [sourcesAndEntries, governance, configurations];
