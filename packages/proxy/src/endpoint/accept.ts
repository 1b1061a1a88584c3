/** How a POST can be answered; `either` names event streams and admits JSON, `neither` is HTTP 406. */
export type ReplyForm = 'stream' | 'either' | 'json' | 'neither';

/** The media ranges of an Accept header that are wanted at all (RFC 9110 §12.5.1; `;q=0` means not wanted). */
function ranges(accept: string): readonly string[] {
  return accept
    .toLowerCase()
    .split(',')
    .filter((range) => !/;\s*q=0(?:\.0*)?\s*$/u.test(range))
    .map((range) => (range.split(';', 1)[0] ?? '').trim());
}

/** Event streams are for clients that name them; no header admits anything. */
export function replyForm(accept: string | undefined): ReplyForm {
  if (accept === undefined || accept === '*/*') return 'json';
  const wanted = ranges(accept);
  const admitsJson = wanted.some(
    (range) => range === 'application/json' || range === '*/*' || range === 'application/*',
  );
  if (wanted.includes('text/event-stream')) return admitsJson ? 'either' : 'stream';
  if (admitsJson) return 'json';
  return wanted.includes('text/*') ? 'stream' : 'neither';
}

/** True when a GET may be answered with an event stream. */
export function acceptsStream(accept: string | undefined): boolean {
  return ranges(accept ?? '').some((range) => ['text/event-stream', 'text/*', '*/*'].includes(range));
}
