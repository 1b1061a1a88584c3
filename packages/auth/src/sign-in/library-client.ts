import * as oauth from 'oauth4webapi';
import type { KeptClient } from './port.ts';

const CLOCK_TOLERANCE_S = 300;

/** The client as the library wants it; clocks may differ by some minutes. */
export function libraryClient({ id }: KeptClient): oauth.Client {
  return { client_id: id, [oauth.clockTolerance]: CLOCK_TOLERANCE_S };
}
