import { createHash } from 'node:crypto';
import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { z } from 'zod';

const configShape = z.object({ currentContext: z.string().optional() });
const metaShape = z.object({ Endpoints: z.object({ docker: z.object({ Host: z.string() }) }) });

export interface ContextQuestion {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  /** Text of a file, undefined when it does not exist. */
  readonly readText: (file: string) => Promise<string | undefined>;
}

/**
 * The engine address of the current docker context: `DOCKER_CONTEXT`, else `currentContext` of the docker config
 * (contexts lie under the SHA-256 of their name). Undefined for no or the `default` context. Throws
 * `runtime/unavailable` when the context is named and cannot be read.
 */
export async function currentContext(
  question: ContextQuestion,
): Promise<{ name: string; host: string } | undefined> {
  const directory = question.env['DOCKER_CONFIG'] ?? path.join(question.home, '.docker');
  const name =
    question.env['DOCKER_CONTEXT'] || (await configured(question, path.join(directory, 'config.json')));
  if (!name || name === 'default') return undefined;
  const id = createHash('sha256').update(name).digest('hex');
  const text = await question.readText(path.join(directory, 'contexts/meta', id, 'meta.json'));
  const meta = metaShape.safeParse(parseJson(text));
  if (!meta.success) {
    throw new SkepError('runtime/unavailable', {
      message: `docker context "${name}" has no readable engine address`,
    });
  }
  return { name, host: meta.data.Endpoints.docker.Host };
}

async function configured(question: ContextQuestion, file: string): Promise<string | undefined> {
  const config = configShape.safeParse(parseJson(await question.readText(file)));
  return config.success ? config.data.currentContext : undefined;
}

function parseJson(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? 'null') as unknown;
  } catch {
    return undefined; // the shape check answers
  }
}
