import type { AuditEvent } from '@skep/core/audit/audit-event.ts';
import type { AuditLog } from '@skep/core/audit/audit-log.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { expect, test } from 'vitest';
import type { AuditSettings } from '../config/audit.ts';
import { AuditSwitch } from './audit-switch.ts';

const settings = (path: string): AuditSettings => ({
  logFile: { path },
  eventTypes: [],
  excludeEventTypes: [],
  data: 'none',
});

/** Audit logs that tell what happens to them. */
function recorded() {
  const events: string[] = [];
  const audit = new AuditSwitch(async ({ logFile }) => {
    const name = logFile === 'stdout' ? logFile : logFile.path;
    if (name === '/broken') throw new SkepError('audit/unwritable');
    events.push(`open ${name}`);
    const log: AuditLog = {
      wants: () => true,
      record: ({ type }) => events.push(`${name} ${type}`),
      reopen: async () => void events.push(`reopen ${name}`),
      close: async () => void events.push(`close ${name}`),
    };
    return log;
  });
  return { audit, events };
}

const event = (type: string): AuditEvent => ({
  type,
  outcome: 'success',
  component: 'test',
  source: { type: 'local', value: 'test' },
  subjects: {},
  target: {},
  metadata: { extra: {} },
});

test('goes from one audit log to another, on and off', async () => {
  const { audit, events } = recorded();
  audit.record(event('nobody.hears'));
  await (await audit.prepare(settings('/a'))).use();
  audit.record(event('first'));
  const next = await audit.prepare(settings('/b'));
  audit.record(event('still'));
  await next.use();
  audit.record(event('second'));
  await audit.reopen();
  await (await audit.prepare('off')).use();
  audit.record(event('nobody.hears'));
  await audit.close();
  expect(events).toEqual([
    'open /a',
    '/a first',
    'open /b',
    '/a still',
    'close /a',
    '/b second',
    'reopen /b',
    'close /b',
  ]);
});

test('opens nothing for the settings it has', async () => {
  const { audit, events } = recorded();
  await (await audit.prepare(settings('/a'))).use();
  await (await audit.prepare(settings('/a'))).use();
  audit.record(event('one'));
  expect(events).toEqual(['open /a', '/a one']);
});

test('stays with the one in use when the next cannot be opened or is discarded', async () => {
  const { audit, events } = recorded();
  await (await audit.prepare(settings('/a'))).use();
  await expect(audit.prepare(settings('/broken'))).rejects.toMatchObject({ code: 'audit/unwritable' });
  await (await audit.prepare(settings('/b'))).discard();
  audit.record(event('one'));
  expect(events).toEqual(['open /a', 'open /b', 'close /b', '/a one']);
});
