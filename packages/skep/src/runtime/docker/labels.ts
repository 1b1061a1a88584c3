/** Labels that find what Skep made on an engine (docs/behaviour/run.md#labels). */
export const MANAGED_LABEL = 'skep.managed';
export const NAME_LABEL = 'skep.name';

/** The engine's `filters` parameter. */
export function filters(conditions: Readonly<Record<string, readonly string[]>>): string {
  return JSON.stringify(conditions);
}
