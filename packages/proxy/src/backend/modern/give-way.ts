/**
 * Of `all`, oldest first, what gives way to others: the oldest that belongs to whoever has most of them, so that nobody loses a
 * place to one who takes all. Undefined where there is nothing.
 */
export function oldestOfMost<T>(all: readonly T[], ownerOf: (one: T) => string): T | undefined {
  const counts = new Map<string, number>();
  for (const one of all) counts.set(ownerOf(one), (counts.get(ownerOf(one)) ?? 0) + 1);
  const most = Math.max(...counts.values());
  return all.find((one) => counts.get(ownerOf(one)) === most);
}
