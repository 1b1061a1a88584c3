import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import type { Log } from '../log/log.ts';

/** The half of an OTLP exporter that sends. */
interface Exporter<Batch> {
  export(batch: Batch, done: (result: ExportResult) => void): void;
}

/**
 * Tells in the log when a collector stops answering and when it answers again; once each, since a collector that is
 * away for an hour is one event and not sixty. Returns the exporter it was given.
 */
export function reportedExport<Batch, E extends Exporter<Batch>>(
  exporter: E & Exporter<Batch>,
  signal: 'traces' | 'metrics',
  log: Log,
): E {
  let failing = false;
  const send = exporter.export.bind(exporter);
  const plain: Exporter<Batch> = exporter;
  plain.export = (batch, done) =>
    send(batch, (result) => {
      const failed = result.code !== ExportResultCode.SUCCESS;
      if (failed && !failing) log.warn({ signal, err: result.error }, 'telemetry cannot be sent');
      if (!failed && failing) log.info({ signal }, 'telemetry is sent again');
      failing = failed;
      done(result);
    });
  return exporter;
}
