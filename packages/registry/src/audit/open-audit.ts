import {
  openAuditLog,
  streamSink,
  type AuditLog,
  type StreamSinkOptions,
} from '@skep/core/audit/audit-log.ts';
import { openFileSink } from '@skep/core/audit/file-sink.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { AuditSettings } from '../config/audit.ts';

export interface AuditServices {
  readonly stdout: StreamSinkOptions['stream'];
  readonly log: Log;
  /** RFC 3339 UTC. */
  readonly now: () => string;
  readonly randomId: () => string;
  /** Counts events that could not be written. */
  readonly onLost: (events: number) => void;
}

/** Opens the audit log of a configuration. Fails with `audit/unwritable`. */
export async function openAudit(settings: AuditSettings, services: AuditServices): Promise<AuditLog> {
  const { log, now, randomId, stdout } = services;
  const onLost = (lines: number, err: unknown): void => {
    log.error({ err, events: lines }, 'audit events could not be written');
    services.onLost(lines);
  };
  const sink =
    settings.logFile === 'stdout'
      ? streamSink({ stream: stdout, onLost })
      : await openFileSink({ path: settings.logFile.path, onLost });
  return openAuditLog({ sink, filter: settings, now, randomId });
}
