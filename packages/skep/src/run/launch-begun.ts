import type { Context } from '../cli/context.ts';
import { openClient } from '../cli/open-client.ts';
import { openProgress } from '../print/progress.ts';
import { loadRunConfig } from '../run-config/file.ts';
import type { Connection } from '../supervisor/connect.ts';
import { launchSaved } from './launch-saved.ts';

/** Waits for a workload that the supervisor has saved and is starting, and shows it as `launchSaved` does. */
export async function launchBegun(name: string, connection: Connection, context: Context): Promise<void> {
  const client = openClient(context);
  client.takeOver(connection);
  const progress = openProgress(context.terminal);
  try {
    const config = await loadRunConfig(context.places, name);
    await launchSaved(config, { foreground: false, progress, context, client });
  } finally {
    progress.end();
    client.close();
  }
}
