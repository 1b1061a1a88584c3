import { join } from 'node:path';
import { places } from '@skep/core/files/places.ts';
import type { Host } from '../host.ts';

/** Where the embedded store lies when the configuration does not say: the user's data directory. */
export function defaultStorePath(host: Host): string {
  return join(places(host).dataDir, 'registry.db');
}
