import type { Credentials } from '../../call/call.ts';

/** What a server is shown, as headers. */
export function shownIn(credentials: Credentials | undefined): Readonly<Record<string, string>> {
  return credentials === undefined ? {} : { [credentials.header]: credentials.value };
}
