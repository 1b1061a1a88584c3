import type { createClient } from '@redis/client';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { trustedWith } from '@skep/core/fetch/ca-bundle.ts';
import { isUntrusted, tlsReason } from '@skep/core/fetch/tls-reason.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { Log } from '@skep/core/log/log.ts';
import type { Clock, Timer } from '@skep/core/time/clock.ts';

export interface RedisSettings {
  /** `redis://` or `rediss://` (TLS), without a password. */
  readonly address: string;
  readonly database: number;
  /** What each key begins with. */
  readonly keyPrefix: string;
  readonly password?: string | undefined;
  /** Extra certificate authorities, PEM. */
  readonly ca?: readonly string[] | undefined;
}

export interface RedisServices {
  readonly clock: Pick<Clock, 'after'>;
  readonly log: Log;
  /** In [0, 1): replicas that lost Redis together do not come back together. */
  readonly random?: (() => number) | undefined;
}

const CONNECT_WITHIN_MS = 3_000;
const ANSWER_WITHIN_MS = 2_000;
const PING_EVERY_MS = 10_000;
const LONGEST_PAUSE_MS = 2_000;
const MOST_WAITING = 4_096;
/** Answers that come too late, one after another, before the connection is left for another: its other end may be gone. */
const MOST_LATE = 2;

type Client = ReturnType<typeof newClient>;

/** Loads the client, and begins to connect. */
export async function openRedisConnection(
  settings: RedisSettings,
  services: RedisServices,
): Promise<RedisConnection> {
  const { createClient: create } = await import('@redis/client');
  return new RedisConnection(settings, services, create);
}

/** One connection at a time, made anew whenever it ends or says nothing, until it is closed. */
export class RedisConnection {
  readonly #services: RedisServices;
  readonly #dial: () => Dialled;
  readonly #whenBack: (() => void)[] = [];
  #current: Dialled;
  #isAway = false;
  /** Answers that did not come, since the last that did. */
  #late = 0;

  constructor(settings: RedisSettings, services: RedisServices, create: typeof createClient) {
    this.#services = services;
    this.#dial = () =>
      dial(settings, services, create, {
        ready: () => this.#ready(),
        failed: (error) => this.#away(whyOf(error, settings.address)),
        hangs: () => this.#dialAnew(),
      });
    this.#current = this.#dial();
  }

  /** Rejects with `proxy/session-store-away` where no answer comes in time. */
  async asked<T>(answer: (client: Client) => Promise<T>): Promise<T> {
    const { client } = this.#current;
    const tooLate = Promise.withResolvers<never>();
    const limit = this.#services.clock.after(ANSWER_WITHIN_MS, () => {
      tooLate.reject(new Error('no answer in time'));
      this.#missed(client);
    });
    try {
      const said = await Promise.race([answer(client), tooLate.promise]);
      this.#late = 0;
      return said;
    } catch (cause) {
      throw new SkepError('proxy/session-store-away', { cause });
    } finally {
      limit.cancel();
    }
  }

  /** `tell` is called each time that there is a connection again. */
  onBack(tell: () => void): void {
    this.#whenBack.push(tell);
  }

  close(): void {
    this.#current.end();
  }

  #missed(client: Client): void {
    if (this.#current.client !== client) return;
    this.#late += 1;
    if (this.#late >= MOST_LATE) this.#dialAnew();
  }

  /** A node that is lost ends no connection, and the system goes on for a quarter of an hour. */
  #dialAnew(): void {
    this.#away('it takes connections and says nothing');
    this.#late = 0;
    this.#current.end();
    this.#current = this.#dial();
  }

  #away(why: string): void {
    if (!this.#isAway)
      this.#services.log.warn(
        { why },
        'Redis does not answer: only sessions that this proxy knows are served',
      );
    this.#isAway = true;
  }

  #ready(): void {
    if (this.#isAway) this.#services.log.info({}, 'Redis answers again: sessions are shared');
    this.#isAway = false;
    this.#late = 0;
    for (const tell of this.#whenBack) tell();
  }
}

interface Dialled {
  readonly client: Client;
  /** Nobody hears of it any more. */
  end(): void;
}

/** Who hears of one connection. */
interface Told {
  readonly ready: () => void;
  readonly failed: (error: unknown) => void;
  /** It was taken, and nothing was said over it. */
  readonly hangs: () => void;
}

/** Begins to connect, and goes on. */
function dial(
  settings: RedisSettings,
  services: RedisServices,
  create: typeof createClient,
  told: Told,
): Dialled {
  let isDialling = true;
  let isOver = false;
  let silence: Timer | undefined;
  const client = newClient(
    create,
    optionsOf(settings, services, () => isOver),
  );
  // What is destroyed while it dials connects all the same, and stays (@redis/client 6.3.1).
  const destroy = (): void => {
    if (!isDialling && client.isOpen) client.destroy();
  };
  client.on('reconnecting', () => (isDialling = true));
  client.on('connect', () => {
    isDialling = false;
    if (isOver) destroy();
    else silence = services.clock.after(CONNECT_WITHIN_MS, told.hangs);
  });
  client.on('error', (error: Error) => {
    isDialling = false;
    silence?.cancel();
    if (!isOver) told.failed(error);
  });
  client.on('ready', () => {
    silence?.cancel();
    if (!isOver) told.ready();
  });
  client.connect().catch(() => {});
  return {
    client,
    end() {
      isOver = true;
      silence?.cancel();
      destroy();
    },
  };
}

function newClient(create: typeof createClient, options: ReturnType<typeof optionsOf>) {
  return create(options);
}

function optionsOf(
  { address, database, password, ca }: RedisSettings,
  { random = () => 0.5 }: RedisServices,
  isOver: () => boolean,
) {
  return {
    url: address,
    database,
    ...(password === undefined ? {} : { password }),
    disableOfflineQueue: true,
    disableClientInfo: true,
    commandsQueueMaxLength: MOST_WAITING,
    pingInterval: PING_EVERY_MS,
    maintNotifications: 'disabled',
    RESP: 2,
    socket: {
      connectTimeout: CONNECT_WITHIN_MS,
      reconnectStrategy: (tries: number) =>
        !isOver() && Math.min(100 * 2 ** Math.min(tries, 10), LONGEST_PAUSE_MS) * (0.5 + random()),
      ...(ca !== undefined && isOverTls(address) ? { tls: true as const, ca: trustedWith(ca) } : {}),
    },
  } as const;
}

function isOverTls(address: string): boolean {
  return address.startsWith('rediss:');
}

/** Why no connection came to be, and what can be done where something can. */
function whyOf(error: unknown, address: string): string {
  const code = errnoOf(error);
  const isTls = isOverTls(address);
  const reason = tlsReason(code);
  if (isUntrusted(code)) return `${reason}: name it with --skep-ca-bundle`;
  if (reason !== undefined) return reason;
  const message = error instanceof Error ? error.message : '';
  if (message === 'Connection timeout')
    return isTls ? 'it gives no answer in TLS: it may not speak that' : 'nothing takes a connection there';
  const isCut = code === 'ECONNRESET' || message === 'Socket closed unexpectedly';
  if (!isCut) return message;
  return `it ends the connection, as one does that ${isTls ? 'does not speak' : 'wants'} TLS (rediss://)`;
}
