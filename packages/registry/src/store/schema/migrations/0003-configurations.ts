import type { Migration } from './migration.ts';

/** Which configurations there have been, in which order, and which of them running processes have. */
export const configurations: Migration = {
  name: 'configurations',
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
