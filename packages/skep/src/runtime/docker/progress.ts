import { z } from 'zod';

const lineShape = z.object({
  stream: z.string().optional(),
  status: z.string().optional(),
  id: z.string().optional(),
  error: z.string().optional(),
  errorDetail: z.object({ message: z.string().optional() }).optional(),
  progressDetail: z.object({ current: z.number().optional(), total: z.number().optional() }).optional(),
  aux: z.unknown().optional(),
});

export type ProgressLine = z.infer<typeof lineShape>;

/** Decodes one line of a pull or build stream; members that are not understood are left out. */
export function progressLine(value: unknown): ProgressLine {
  const parsed = lineShape.safeParse(value);
  return parsed.success ? parsed.data : {};
}

/** The failure a line reports. Pull and build answer 200 and fail inside the stream. */
export function progressError(line: ProgressLine): string | undefined {
  return line.errorDetail?.message ?? line.error;
}

/** Adds up the layers of one pull: each line in, one sentence out. */
export class PullProgress {
  readonly #layers = new Map<string, { done: number; total: number }>();

  /** Text for people, or undefined when this line changes nothing worth saying. */
  take(line: ProgressLine): string | undefined {
    const { id, status, progressDetail } = line;
    if (id === undefined || status === undefined) return status;
    if (status === 'Downloading' && progressDetail?.total !== undefined) {
      this.#layers.set(id, { done: progressDetail.current ?? 0, total: progressDetail.total });
    } else if (status === 'Download complete') {
      const layer = this.#layers.get(id);
      if (layer) layer.done = layer.total;
    } else return undefined;
    const all = [...this.#layers.values()];
    const sum = (pick: (layer: { done: number; total: number }) => number) => megabytes(all.map(pick));
    return all.length === 0
      ? undefined
      : `${sum((layer) => layer.done)} of ${sum((layer) => layer.total)} MB`;
  }
}

const megabytes = (bytes: readonly number[]) =>
  (bytes.reduce((sum, one) => sum + one, 0) / 1_000_000).toFixed(1);
