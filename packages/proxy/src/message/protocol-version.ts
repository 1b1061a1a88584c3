/** MCP revisions with sessions and `initialize`, oldest first. */
export const LEGACY_VERSIONS: readonly string[] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];

/** The last revision with sessions. */
export const NEWEST_LEGACY_VERSION = '2025-11-25';

/** The stateless revision. */
export const MODERN_VERSION = '2026-07-28';

export const KNOWN_VERSIONS: readonly string[] = [...LEGACY_VERSIONS, MODERN_VERSION];

/** True for what a header can say of a revision, known or not. */
export function isVersion(text: unknown): text is string {
  return typeof text === 'string' && /^[\w.-]{1,64}$/u.test(text);
}

/** Revisions are dates, so text order is time order. */
export function isOlder(version: string, than: string): boolean {
  return version < than;
}

/** From this revision on a stream opens with an empty event, so that it can be resumed before its first message. */
export function opensWithEmptyEvent(version: string): boolean {
  return !isOlder(version, '2025-11-25');
}
