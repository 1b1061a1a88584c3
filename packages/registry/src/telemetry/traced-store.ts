import type { Tracing } from '@skep/core/telemetry/tracing.ts';
import type { Store } from '../store/store.ts';

/** Operations that are asked for all the time and do next to nothing. */
const UNTRACED = new Set(['ping', 'close']);

/** The store with a span `dbService.<Operation>` around each operation. Arguments stay out of it. */
export function tracedStore<S extends Store>(store: S, tracing: Tracing): S {
  const traced = Object.entries(store).map(([name, member]: [string, unknown]) => {
    if (typeof member !== 'function' || UNTRACED.has(name)) return [name, member];
    const inSpan = (...given: unknown[]): unknown => {
      const result: unknown = Reflect.apply(member, store, given);
      return result instanceof Promise ? tracing.inSpan({ name: operation(name) }, () => result) : result;
    };
    return [name, inSpan];
  });
  return { ...store, ...Object.fromEntries(traced) };
}

function operation(name: string): string {
  return `dbService.${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
}
