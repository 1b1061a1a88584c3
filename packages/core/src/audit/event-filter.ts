/** Which events are written: those of the allow-list, all when it is empty, without the excluded ones. */
export interface EventFilter {
  readonly eventTypes: readonly string[];
  /** Wins over `eventTypes`. */
  readonly excludeEventTypes: readonly string[];
}

export function eventPredicate({ eventTypes, excludeEventTypes }: EventFilter): (type: string) => boolean {
  const allowed = new Set(eventTypes);
  const excluded = new Set(excludeEventTypes);
  return (type) => !excluded.has(type) && (allowed.size === 0 || allowed.has(type));
}
