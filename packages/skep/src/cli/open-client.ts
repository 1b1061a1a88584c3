import { SupervisorClient } from '../supervisor/client.ts';
import type { Context } from './context.ts';

/** This user's supervisor, as the command sees it. Nothing is started before a call needs it. */
export function openClient(context: Context): SupervisorClient {
  return new SupervisorClient(context);
}
