import type { Places } from '@skep/core/files/places.ts';
import { SupervisorClient, type ClientOptions } from './client.ts';
import { systemClock } from '@skep/core/time/clock.ts';

/** A client for tests of one home directory; a supervisor that it starts ends at once, without ever listening. */
export function testClient(
  where: Places,
  processes: Pick<ClientOptions, 'isAlive' | 'end'> & Partial<ClientOptions>,
): SupervisorClient {
  return new SupervisorClient({
    places: where,
    uid: process.getuid?.(),
    program: { node: '/bin/false', entry: 'x', version: '1.0.0' },
    env: {},
    cwd: '/',
    platform: 'linux',
    clock: systemClock,
    lacksGroups: () => false,
    ...processes,
  });
}
