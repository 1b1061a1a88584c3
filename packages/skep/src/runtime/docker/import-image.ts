import { pack, type Pack } from 'tar-stream';
import type { EngineClient } from './client.ts';
import { refused } from './failure.ts';

interface Import {
  /** With a tag. */
  readonly reference: string;
  /** `name=value` each. */
  readonly labels: readonly string[];
  /** Whose image it is, for people. */
  readonly what: string;
  /** Writes all of its files, and finalizes. */
  readonly content: (body: Pack) => Promise<void>;
}

/** Makes an image of files alone, without any other image or network. Fails with `runtime/engine-refused`, or as `content` does. */
export async function importImage(
  client: EngineClient,
  { reference, labels, what, content }: Import,
): Promise<void> {
  const [repo = '', tag = ''] = reference.split(':');
  // One at a time: Podman takes several of one line for one.
  const changes = labels.map((one) => `LABEL ${one}`);
  const body = pack();
  const sent = content(body).catch((error: unknown) => {
    // The request ends with the reason.
    body.destroy(error instanceof Error ? error : undefined);
  });
  const query = { fromSrc: '-', changes };
  const answer = await client.call({ method: 'POST', path: '/images/create', query, body });
  await sent;
  const told = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body);
  // 200 even when it failed.
  const [, why] = /"error":("(?:[^"\\]|\\.)*")/.exec(told) ?? [];
  const [, id] = /"status":"(sha256:[0-9a-f]{64})"/.exec(told) ?? [];
  if (answer.status !== 200 || why !== undefined || id === undefined)
    throw refused(`make the image of ${what}`, { ...answer, body: why ?? answer.body });
  // Afterwards, because Podman leaves the tag out of what is imported.
  const path = `/images/${id}/tag`;
  await client.ask(`name the image of ${what}`, { method: 'POST', path, query: { repo, tag } });
}
