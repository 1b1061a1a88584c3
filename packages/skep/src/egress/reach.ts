import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { connect, isIP, type Socket } from 'node:net';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { canonicalAddress } from '@skep/core/fetch/address-class.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import type { Decision } from './decision.ts';
import { type Authority, canonicalHost, showAuthority } from './host-name.ts';
import type { Denial, Judge } from './judge.ts';

/** Connects to the first of these addresses that answers. */
export type Connect = (addresses: readonly LookupAddress[], port: number) => Socket;
/** All addresses of a name. */
export type ResolveAll = (name: string) => Promise<readonly LookupAddress[]>;

/** A decision as it is made; the log adds when and how often. */
export type Decided = Omit<Decision, 'time' | 'count'>;

export interface ReachOptions {
  readonly judge: Judge;
  readonly clock: Clock;
  readonly record: (decided: Decided) => void;
  readonly resolve?: ResolveAll;
  readonly connect?: Connect;
}

export type Reached =
  | { readonly socket: Socket }
  | { readonly denied: Denial }
  /** Allowed, but not there: why, for people. */
  | { readonly failed: string };

/** The host of a connection that names none. */
const UNNAMED = '?';
const CONNECT_MS = 30_000;
const RESOLVE_MS = 15_000;
/** Of names that are resolved at once, and of those that wait for it: libuv has four threads for them. */
const MAX_RESOLVING = 4;
const MAX_WAITING = 128;
/** A name may have many addresses. All are judged, and so many are tried. */
const MAX_TRIED = 16;
const KEEP_ALIVE_MS = 60_000;

/**
 * Reaches what a workload asks for, if its policy allows: judges the name, resolves it once, judges every address that was
 * found, and connects to those very addresses, so no later answer counts. Each decision is recorded.
 */
export class Reach {
  readonly #options: ReachOptions;
  readonly #waiting: (() => void)[] = [];
  #resolving = 0;

  constructor(options: ReachOptions) {
    this.#options = options;
  }

  /** Whether a connection to `asked` may name this host to the server (TLS SNI). Records a denial. */
  allowsName(name: string, asked: Authority, via: Decision['via']): boolean {
    const host = canonicalHost(name);
    if (host === asked.host) return true;
    const denial: Denial | undefined =
      host === undefined
        ? { reason: 'the name asked for in TLS is no host name', never: true }
        : this.#options.judge.host(host, asked.port);
    if (denial === undefined) return true;
    const reason = `asked for in TLS over a connection to ${asked.host}: ${denial.reason}`;
    this.#deny({ ...denial, reason }, { host: host ?? asked.host, port: asked.port }, via);
    return false;
  }

  /** Records a connection that was led here and names no host. */
  denyUnnamed(port: number): void {
    this.#deny({ reason: 'the connection names no host' }, { host: UNNAMED, port }, 'direct');
  }

  /** A connection to the host, or why there is none. Never fails. */
  async open(asked: Authority, via: Decision['via']): Promise<Reached> {
    const { host, port } = asked;
    const { judge, record } = this.#options;
    const unseen = judge.host(host, port);
    if (unseen !== undefined) return this.#deny(unseen, asked, via);
    const found = await this.#addressesOf(host).catch(reasonOf);
    if (typeof found === 'string' || found.length === 0) {
      const why = typeof found === 'string' ? found : 'it has none';
      const reason = `the address of ${host} was not found (${why})`;
      record({ decision: 'not-found', host, port, via, reason });
      return { failed: reason };
    }
    // In the spelling that is judged, so that nothing else is connected to.
    const addresses = found.map(({ address }) => canonicalAddress(address) ?? address);
    for (const address of addresses) {
      const denied = judge.address(host, port, address);
      if (denied !== undefined) return this.#deny(denied, asked, via);
    }
    record({ decision: 'allowed', host, port, via });
    const tried = addresses.slice(0, MAX_TRIED).map((address) => ({ address, family: isIP(address) }));
    return this.#connected(tried, asked);
  }

  #deny(denied: Denial, { host, port }: Authority, via: Decision['via']): Reached {
    const { reason, never } = denied;
    this.#options.record({ decision: 'denied', host, port, via, reason, ...(never ? { never } : {}) });
    return { denied };
  }

  async #addressesOf(host: string): Promise<readonly LookupAddress[]> {
    const leadsTo = this.#options.judge.leadsTo(host);
    const literal = leadsTo ?? (isIP(host) === 0 ? undefined : host);
    if (literal !== undefined) return [{ address: literal, family: isIP(literal) }];
    if (this.#resolving >= MAX_RESOLVING) await this.#turn();
    else this.#resolving += 1;
    try {
      return await this.#inTime((this.#options.resolve ?? resolveAll)(host));
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#resolving -= 1;
      else next();
    }
  }

  #turn(): Promise<void> {
    if (this.#waiting.length >= MAX_WAITING)
      throw new SkepError('fetch/unreachable', { message: 'too many names at once' });
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  async #inTime<T>(answer: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>();
    const timer = this.#options.clock.after(RESOLVE_MS, () =>
      reject(new SkepError('fetch/timeout', { message: 'no answer in time' })),
    );
    try {
      return await Promise.race([answer, promise]);
    } finally {
      timer.cancel();
    }
  }

  #connected(addresses: readonly LookupAddress[], asked: Authority): Promise<Reached> {
    const socket = (this.#options.connect ?? connectTo)(addresses, asked.port);
    return new Promise((resolve) => {
      const failed = (why: string) => {
        socket.destroy();
        resolve({ failed: `${showAuthority(asked)} does not answer (${why})` });
      };
      const timer = this.#options.clock.after(CONNECT_MS, () => failed('too late'));
      socket.once('connect', () => {
        timer.cancel();
        socket.off('close', closed);
        socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS);
        resolve({ socket });
      });
      const closed = () => failed('closed');
      socket.once('close', closed);
      // Stays for as long as the socket: an error is followed by `close`, which everybody listens to.
      socket.on('error', (error) => {
        timer.cancel();
        failed(reasonOf(error));
      });
    });
  }
}

function reasonOf(error: unknown): string {
  return error instanceof SkepError ? error.message : (errnoOf(error) ?? 'unknown');
}

function resolveAll(name: string): Promise<readonly LookupAddress[]> {
  return lookup(name, { all: true });
}

/** `connect` of a name asks for its addresses, which are known here: each is tried for half a second. */
function connectTo(addresses: readonly LookupAddress[], port: number): Socket {
  return connect({
    host: 'judged.invalid',
    port,
    lookup: (_host, _options, found) => found(null, [...addresses]),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: 500,
    allowHalfOpen: true,
  });
}
