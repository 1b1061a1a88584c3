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

/** Destroys `to` when `from` breaks off before its end. */
export function breakTogether(from: Duplex, to: Duplex): void {
  if (from.destroyed) to.destroy();
  from.on('error', () => void to.destroy());
  from.once('close', () => {
    if (!from.readableEnded) to.destroy();
  });
}
