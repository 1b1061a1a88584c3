import { describe, expect, test } from 'vitest';
import { AUDIT_EVENTS } from './audit-events.ts';
import { auditShape, resolvedAudit } from './audit.ts';
import { checkShape } from '../shape/check-shape.ts';
import { pathText } from '../shape/problem.ts';
import { telemetryShape } from './telemetry.ts';

const problemsOf = (shape: typeof auditShape | typeof telemetryShape, value: unknown): string[] => {
  const checked = checkShape(shape, value);
  return 'problems' in checked
    ? checked.problems.map(({ path, message }) => `${pathText(path)}: ${message}`)
    : [];
};

const audit = (block: object) => resolvedAudit(auditShape.parse(block), '/etc');

describe('the audit block', () => {
  test.each<[value: object, problem: string]>([
    [{ enabled: 'yes' }, 'enabled: must be true or false, not "yes"'],
    [{ enable: true }, 'enable: unknown key "enable"; did you mean "enabled"?'],
    [{ maxDataSize: -1 }, 'maxDataSize: must not be negative'],
    [{ maxDataSize: 1.5 }, 'maxDataSize: must be a whole number of bytes'],
    [{ maxDataSize: 1_048_577 }, 'maxDataSize: audit.maxDataSize must not exceed 1048576 bytes, got 1048577'],
    [
      { eventTypes: ['entry.publsh'] },
      'eventTypes[0]: unknown event type "entry.publsh"; did you mean "entry.publish"?',
    ],
    [{ excludeEventTypes: ['nothing'] }, 'excludeEventTypes[0]: unknown event type "nothing"'],
  ])('refuses %j', (value, problem) => {
    expect(problemsOf(auditShape, value)).toEqual([problem]);
  });

  test('accepts every event and the largest size', () => {
    const value = {
      eventTypes: [...AUDIT_EVENTS],
      excludeEventTypes: [],
      maxDataSize: 1_048_576,
      logFile: 'a.log',
    };
    expect(problemsOf(auditShape, value)).toEqual([]);
  });

  test('is off unless it is enabled', () => {
    expect(audit({})).toBe('off');
    expect(audit({ logFile: '/var/audit.log' })).toBe('off');
  });

  test('writes all events without bodies to standard output by default', () => {
    expect(audit({ enabled: true })).toEqual({
      logFile: 'stdout',
      eventTypes: [],
      excludeEventTypes: [],
      data: 'none',
    });
  });

  test.each([
    [undefined, 1024],
    [0, 1024],
    [1, 1],
  ])('with maxDataSize %j keeps %d bytes of a body', (maxDataSize, maxBytes) => {
    const resolved = audit({ enabled: true, includeRequestData: true, maxDataSize, logFile: 'a.log' });
    expect(resolved).toMatchObject({ data: { maxBytes }, logFile: { path: '/etc/a.log' } });
  });
});

describe('the telemetry block', () => {
  test.each<[value: object, problem: string]>([
    [{ tracing: { sampling: 0 } }, 'tracing.sampling: must be greater than 0 and at most 1'],
    [{ tracing: { sampling: 1.01 } }, 'tracing.sampling: must be greater than 0 and at most 1'],
    [
      { endpoint: 'ftp://collector' },
      'endpoint: must be host:port or an http or https URL of an OTLP/HTTP collector',
    ],
    [{ endpoint: 'a b' }, 'endpoint: must be host:port or an http or https URL of an OTLP/HTTP collector'],
    [{ serviceName: '' }, 'serviceName: must not be empty'],
    [{ metrics: { enable: true } }, 'metrics.enable: unknown key "enable"; did you mean "enabled"?'],
    [
      { endpoint: '', tracing: { enabled: true } },
      'endpoint: must not be empty while tracing is enabled: traces have nowhere else to go',
    ],
  ])('refuses %j', (value, problem) => {
    expect(problemsOf(telemetryShape, value)).toEqual([problem]);
  });

  test.each<[given: { endpoint?: string; insecure?: boolean }, url: string | undefined]>([
    [{}, 'https://localhost:4318'],
    [{ insecure: true }, 'http://localhost:4318'],
    [{ endpoint: 'otel:4318', insecure: true }, 'http://otel:4318'],
    [{ endpoint: 'http://otel:4318/base/' }, 'http://otel:4318/base'],
    [{ endpoint: 'https://otel', insecure: true }, 'https://otel'],
    [{ endpoint: '' }, undefined],
  ])('reads %j as %s', (given, url) => {
    const resolved = telemetryShape.parse({ enabled: true, ...given });
    expect(resolved).toMatchObject({ endpoint: url === undefined ? 'none' : { url } });
  });

  test('is off unless it is enabled, and then measures only what is asked for', () => {
    expect(telemetryShape.parse({ metrics: { enabled: true } })).toBe('off');
    expect(telemetryShape.parse({ enabled: true })).toMatchObject({ tracing: 'off', metrics: 'off' });
    expect(telemetryShape.parse({ enabled: true, tracing: { enabled: true } })).toMatchObject({
      tracing: { sampling: 0.05 },
    });
  });
});
