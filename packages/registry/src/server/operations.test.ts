import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { AuditConfig } from '../config/audit.ts';
import type { TelemetryConfig } from '../config/telemetry.ts';
import { ReadEngine } from '../engine/read-engine.ts';
import { appOptions, configWith, recordedLog } from './app.fixture.ts';
import { type Operations, openOperations, type OperationsOptions } from './operations.ts';

const TELEMETRY: TelemetryConfig = {
  serviceName: 'test',
  serviceVersion: undefined,
  endpoint: 'none',
  tracing: 'off',
  metrics: 'on',
};

let folder: string;
let operations: Operations | undefined;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'skep-operations-'));
});
afterEach(async () => {
  await operations?.close();
  await rm(folder, { recursive: true });
});

async function opened(changes: Partial<OperationsOptions> = {}): Promise<Operations> {
  const engine = new ReadEngine([]);
  operations = await openOperations({ ...appOptions(), engine, store: {}, ...changes });
  return operations;
}

const auditTo = (...name: string[]): AuditConfig => ({
  logFile: { path: path.join(folder, ...name) },
  eventTypes: [],
  excludeEventTypes: [],
  data: 'none',
});
const types = async (name: string): Promise<unknown[]> =>
  (await readFile(path.join(folder, name), 'utf8'))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line).type);
const REPORT = { sources: [], registries: [], blocked: [] } as never;

test('nothing is watched that is not configured', async () => {
  const { observers, auditable, tracing, scrape } = await opened({ requestLog: 'none' });
  expect({ observers, auditable, tracing, scrape }).toEqual({
    observers: [],
    auditable: false,
    tracing: undefined,
    scrape: undefined,
  });
});

test('an audit log gets what happens, and a reload moves it to another file', async () => {
  const watching = await opened({ config: configWith({ audit: auditTo('first') }) });
  watching.reconciled(REPORT);
  const next = await watching.prepareAudit(auditTo('second'));
  watching.reconciled(REPORT);
  await next.use();
  watching.reconciled(REPORT);
  await watching.close();
  expect(await types('first')).toEqual(['config.reconcile', 'config.reconcile']);
  expect(await types('second')).toEqual(['config.reconcile']);
});

test('an audit log that cannot be written fails the start', async () => {
  const audit = auditTo('no', 'such', 'folder');
  await expect(opened({ config: configWith({ audit }) })).rejects.toMatchObject({ code: 'audit/unwritable' });
});

test('metrics are scraped, at most two at a time', async () => {
  const { scrape, observers, tracing } = await opened({ config: configWith({ telemetry: TELEMETRY }) });
  expect([observers.length, tracing]).toEqual([3, undefined]);
  const outcomes = await Promise.allSettled([scrape?.(), scrape?.(), scrape?.()]);
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
  expect(await scrape?.()).toContain('skep_registry');
});

test('telemetry that measures nothing is said in the log', async () => {
  const { log, lines } = recordedLog();
  await opened({ log, config: configWith({ telemetry: { ...TELEMETRY, metrics: 'off' } }) });
  expect(lines).toMatchObject([{ level: 'warn', message: expect.stringContaining('neither tracing nor') }]);
});
