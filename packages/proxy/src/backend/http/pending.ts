import type { ServerResponse } from 'node:http';
import type { AnswerHook } from '../../call/call.ts';
import type { WhenRefused } from '../modern/refusal.ts';
import type { Opening } from './relayed-sessions.ts';
import type { Asked } from './told-address.ts';

/** A call that waits for its answer. */
export interface Pending {
  readonly res: ServerResponse;
  /** See `Call`. */
  readonly prefix: string;
  /** What the backend is asked for, and where the client came in. */
  readonly asked: Omit<Asked, 'prefix' | 'forwardedOrigin'>;
  readonly method: string | undefined;
  /** Who asks; undefined where that makes no difference. */
  readonly principal: string | undefined;
  /** The session that it names. */
  readonly session: string | undefined;
  /** Raw JSON text; undefined where no answer is due. */
  readonly id: string | undefined;
  readonly refused: WhenRefused | undefined;
  /** For the address that an event stream hands the client; undefined where streams are passed on as they are. */
  readonly seen: Asked | undefined;
  /** Present where it would begin a session. */
  readonly opening: Opening | undefined;
  /** The same of one that is too long to be kept. */
  readonly isOpening: boolean;
  /** Who hears the answer. */
  readonly answerHooks: readonly AnswerHook[];
}
