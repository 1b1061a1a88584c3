import type { Migration } from './migration.ts';

/**
 * Natural keys: the whole identity of a version is what callers ask for, so no numbers have to be looked up while
 * writing. A source takes its entries with it, an entry its versions.
 */
export const sourcesAndEntries: Migration = {
  name: 'sources and entries',
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
