import { z } from 'zod';

/** What a status file must be. */
export const statusSchema = z.object({
  status: z.enum(['starting', 'running', 'unhealthy', 'stopping', 'stopped', 'removing', 'error']),
  /** What a person should know about it. */
  status_context: z.string().exactOptional(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
  started_at: z.iso.datetime().exactOptional(),
  /** The process that hosts the workload's proxy; 0 when none does. */
  process_id: z.int().min(0),
  /** Start time of that process, so that a reused pid is not taken for it. */
  process_started: z.string().default(''),
});
