import { expect, test } from 'vitest';
import { reloadEvent } from '../audit/system-events.ts';
import type { RegistryConfig } from './load.ts';
import { configDifference } from './config-difference.ts';

const registry = (name: string, claims = '') => ({ name, sources: ['one'], claims });

test('a registry that a reload has made, changed or taken away is in the audit log by name, and no value is', () => {
  const before = {
    path: '/c.yaml',
    sources: [],
    registries: [registry('kept'), registry('changed'), registry('gone')],
    auth: { mode: 'anonymous' },
  } as unknown as RegistryConfig;
  const registries = [registry('kept'), registry('changed', '{"org":"secret"}'), registry('new')];
  const event = reloadEvent(configDifference(before, { ...before, registries }), ['cors']);
  expect(event).toMatchObject({
    type: 'config.reload',
    metadata: {
      extra: {
        changed: ['registries'],
        registries: { created: ['new'], updated: ['changed'], deleted: ['gone'] },
        sources: { created: [], updated: [], deleted: [] },
        restart: ['cors'],
      },
    },
  });
  expect(JSON.stringify(event)).not.toContain('secret');
});
