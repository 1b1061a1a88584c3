import { SkepError } from '@skep/core/errors/skep-error.ts';
import { members, readAs, recordOf, text } from '@skep/core/settings/shape.ts';
import type { RuntimeEvent } from '../runtime.ts';
import type { EngineClient } from './client.ts';
import { endpointText } from './endpoint.ts';
import { refused } from './failure.ts';
import { isAuxiliary, MANAGED } from './labels.ts';

const eventShape = members({
  Action: text,
  Actor: members({ Attributes: recordOf(text) }),
});

const ACTIONS: Readonly<Record<string, RuntimeEvent['action']>> = {
  start: 'start',
  die: 'exit',
  destroy: 'remove',
  // Podman's words.
  died: 'exit',
  remove: 'remove',
};

/** Live events of managed containers. The engine's stream has no natural end, so its end is an error. */
export async function* containerEvents(
  client: EngineClient,
  signal: AbortSignal,
): AsyncGenerator<RuntimeEvent> {
  try {
    const request = { path: '/events', filters: { type: ['container'], label: [MANAGED] }, signal };
    for await (const value of client.lines(request, (answer) => refused('report events', answer))) {
      const event = runtimeEvent(value);
      if (event) yield event;
    }
  } catch (error) {
    if (signal.aborted) return;
    throw error;
  }
  throw new SkepError('runtime/engine-unreachable', {
    message: `the container engine at ${endpointText(client.endpoint)} went away`,
  });
}

/** Decodes one event; undefined for the kinds nobody waits for, and for what is no workload itself. */
export function runtimeEvent(value: unknown): RuntimeEvent | undefined {
  const event = readAs(eventShape, value);
  if (event === undefined) return undefined;
  const action = Object.hasOwn(ACTIONS, event.Action) ? ACTIONS[event.Action] : undefined;
  const { name, ...labels } = event.Actor.Attributes;
  if (isAuxiliary(labels)) return undefined;
  return action && name !== undefined ? { name, action } : undefined;
}
