import type { Tracing } from '@skep/core/telemetry/tracing.ts';
import type { Store } from '../store/store.ts';

/** Operations that are asked for all the time and do next to nothing. */
const UNTRACED = new Set(['ping', 'close']);

/** The store with a span `dbService.<Operation>` around each operation. Arguments stay out of it. */
export function tracedStore<S extends Store>(store: S, tracing: Tracing): S {
  return new Proxy(store, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function' || typeof name !== 'string') return member;
      if (UNTRACED.has(name)) return member.bind(target);
      return (...given: unknown[]): unknown => {
        const result: unknown = Reflect.apply(member, target, given);
        if (!(result instanceof Promise)) return result;
        return tracing.inSpan({ name: operation(name) }, () => result);
      };
    },
  });
}

function operation(name: string): string {
  return `dbService.${name.slice(0, 1).toUpperCase()}${name.slice(1)}`;
}
