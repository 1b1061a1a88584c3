#!/usr/bin/env node
import { isMainThread, workerData } from 'node:worker_threads';
import { nodeTooOld } from '@skep/core/node-version.ts';

// Nothing else is imported before the version is known: an old Node fails on an import that it lacks. A thread of the
// program starts here too, see sync/ingest-thread.ts.
const tooOld = nodeTooOld('skep-registry', process.version);
if (tooOld !== undefined) {
  process.stderr.write(tooOld);
  process.exitCode = 1;
} else if (isMainThread) {
  const { runProcess } = await import('./commands/process.ts');
  process.exitCode = await runProcess(new URL(import.meta.url));
} else {
  const { INGEST_THREAD, runIngestThread } = await import('./sync/ingest-thread.ts');
  if (workerData?.task === INGEST_THREAD) runIngestThread();
}
