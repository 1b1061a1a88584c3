/** True for a member that asks for nothing. An object asks for something even when it is empty: `"audit_config": {}` turns auditing on. */
export function isNothing(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === undefined || value === null || value === false || value === '' || value === 0;
}
