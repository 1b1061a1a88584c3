import type { Meter } from '@opentelemetry/api';
import type { PoolState } from '../store/postgres/postgres.ts';

/** Connections to the database, named as the OpenTelemetry conventions for database clients say. */
export function measurePool(meter: Meter, pool: () => PoolState): void {
  const name = { 'db.client.connection.pool.name': 'registry' };
  meter
    .createObservableGauge('db.client.connection.count', { description: 'Connections by what they do' })
    .addCallback((result) => {
      const { idle, total } = pool();
      result.observe(idle, { ...name, 'db.client.connection.state': 'idle' });
      result.observe(total - idle, { ...name, 'db.client.connection.state': 'used' });
    });
  meter
    .createObservableGauge('db.client.connection.max', { description: 'Most connections there may be' })
    .addCallback((result) => result.observe(pool().max, name));
  meter
    .createObservableGauge('db.client.connection.pending_requests', {
      description: 'Work that waits for a connection',
    })
    .addCallback((result) => result.observe(pool().waiting, name));
}
