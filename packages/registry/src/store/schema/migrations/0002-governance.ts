import type { Migration, SqlWords } from './migration.ts';

/**
 * Who may do what, how sources are doing, and what changed when. The columns of `source` that hold the last
 * synchronisation stay for programs of schema 1; `sync_status` takes their place.
 */
export const governance: Migration = {
  name: 'governance',
  compatibleFrom: 1,
  up: (words) => [...sourceColumns(words), ...governanceTables(words), ...revisionTables(words)],
  down: () => [
    ...['change_log', 'store_state', 'sync_lease', 'sync_status', 'registry_source', 'registry'].map(
      (table) => `drop table ${table}`,
    ),
    'drop index source_managed',
    ...[
      'creation_type',
      'kind',
      'config',
      'format',
      'filter',
      'sync_interval',
      'claims',
      'orphaned',
      'created_at',
      'updated_at',
    ].map((column) => `alter table source drop column ${column}`),
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
  ].map((column) => `alter table source add column ${column}`);
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
