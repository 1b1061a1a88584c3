import {
  anything,
  members,
  optional,
  readAs,
  text,
  wholeNumber,
  type ShapeType,
} from '@skep/core/settings/shape.ts';

const lineShape = members({
  stream: optional(text),
  status: optional(text),
  id: optional(text),
  error: optional(text),
  errorDetail: optional(members({ message: optional(text) })),
  progressDetail: optional(members({ current: optional(wholeNumber()), total: optional(wholeNumber()) })),
  aux: optional(anything),
});

export type ProgressLine = ShapeType<typeof lineShape>;

/** Decodes one line of a pull or build stream; members that are not understood are left out. */
export function progressLine(value: unknown): ProgressLine {
  return readAs(lineShape, value) ?? {};
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
