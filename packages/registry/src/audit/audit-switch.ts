import { isDeepStrictEqual } from 'node:util';
import type { AuditEvent } from '@skep/core/audit/audit-event.ts';
import {
  openAuditLog,
  streamSink,
  type AuditLog,
  type StreamSinkOptions,
} from '@skep/core/audit/audit-log.ts';
import { openFileSink } from '@skep/core/audit/file-sink.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { RequestObserver } from '../api/http/observe-requests.ts';
import type { AuditConfig, AuditSettings } from '../config/audit.ts';
import { auditRequests } from './audit-requests.ts';

/** An audit log that is open and not used yet; exactly one of the two is called. */
export interface PreparedAudit {
  /** Events go to it from now on; resolves when the one before is written to its end. */
  use(): Promise<void>;
  discard(): Promise<void>;
}

interface Auditing {
  readonly log: AuditLog;
  readonly observer: RequestObserver;
}

const SAME: PreparedAudit = { use: () => Promise.resolve(), discard: () => Promise.resolve() };

/** The audit log in use, which a reload may replace, switch on or switch off. */
export class AuditSwitch {
  /** Every request, for whichever audit log is in use when it ends. */
  readonly observer: RequestObserver = { end: (exchange) => this.#current?.observer.end(exchange) };
  readonly #open: (settings: AuditSettings) => Promise<AuditLog>;
  #config: AuditConfig = 'off';
  #current: Auditing | undefined;

  constructor(open: (settings: AuditSettings) => Promise<AuditLog>) {
    this.#open = open;
  }

  /** Opens what a configuration asks for, beside what is in use. Fails with `audit/unwritable`. */
  async prepare(config: AuditConfig): Promise<PreparedAudit> {
    if (isDeepStrictEqual(config, this.#config)) return SAME;
    const next = config === 'off' ? undefined : await this.#opened(config);
    return {
      use: async () => {
        const before = this.#current;
        this.#config = config;
        this.#current = next;
        await before?.log.close();
      },
      discard: async () => next?.log.close(),
    };
  }

  record(event: AuditEvent): void {
    this.#current?.log.record(event);
  }

  /** Opens its file anew, after it was rotated. Fails with `audit/unwritable`. */
  async reopen(): Promise<void> {
    await this.#current?.log.reopen();
  }

  /** Idempotent. */
  async close(): Promise<void> {
    await this.#current?.log.close();
  }

  async #opened(settings: AuditSettings): Promise<Auditing> {
    const log = await this.#open(settings);
    return { log, observer: auditRequests(log, settings.data) };
  }
}

interface AuditServices {
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
