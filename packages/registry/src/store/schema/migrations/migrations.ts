import type { Migration } from './migration.ts';
import { sourcesAndEntries } from './0001-sources-and-entries.ts';
import { governance } from './0002-governance.ts';
import { configurations } from './0003-configurations.ts';

/** In order; the number of a migration is its position, counted from 1. Only ever append. */
export const MIGRATIONS: readonly Migration[] = [sourcesAndEntries, governance, configurations];
