import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

/**
 * Sends what comes from each to the other, at the speed of the slower one. The end of one direction is passed on and the
 * other goes on (RFC 9293 §3.6); where a connection breaks, both do.
 */
export function joinSockets(one: Duplex, other: Duplex): void {
  passOn(one, other);
  passOn(other, one);
}

/** One direction of `joinSockets`. */
export function passOn(from: Duplex, to: Duplex): void {
  breakTogether(from, to);
  from.pipe(to);
}

/** Resets `to` when `from` breaks off before its end, so that what was sent so far does not look whole. */
export function breakTogether(from: Duplex, to: Duplex): void {
  const reset = () => {
    if (to.destroyed) return;
    if (to instanceof Socket) to.resetAndDestroy();
    else to.destroy();
  };
  if (from.destroyed) reset();
  from.on('error', reset);
  from.once('close', () => {
    if (!from.readableEnded) reset();
  });
}
