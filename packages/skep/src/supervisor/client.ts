import { unlessHeld, withLock } from '@skep/core/files/lock.ts';
import { SkepError, hasCode } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { compareVersions } from '@skep/core/catalog/version-order.ts';
import type { Clock } from '@skep/core/time/clock.ts';
import { clearAddress, readAddress, supervisorLock } from './address.ts';
import { fromFailure, MAX_LINE_CHARS, readEndpoint, type Request } from './protocol.ts';
import { connect, exchange, type Connection, type ConnectOptions, type CallOptions } from './connect.ts';
import type { StartRequest } from './host.ts';
import type { Endpoint } from './protocol.ts';
import { ensureOwn } from './private-directory.ts';
import type { Removal } from './remove-workload.ts';
import type { SecretEnv } from '../secrets/workload-secrets.ts';
import type { ProcessIdentity } from './process-identity.ts';
import { spawnSupervisor, type Program, type SpawnedSupervisor } from './spawn-supervisor.ts';
import { startLock, type Woken } from './wake-early.ts';

export interface ClientOptions extends ConnectOptions {
  readonly program: Program;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly clock: Clock;
  /** One that comes up already. */
  readonly woken?: Woken;
}

const START_MS = 15_000;
/** What the one command that starts a supervisor may need: a greeting, its watcher, and two starts. */
const OTHERS_START_MS = 60_000;
const POLL_MS = 20;
/** How long to leave it to the watcher to bring a supervisor back before another one is started. */
const WATCHER_MS = 2_000;
/** A supervisor that dies while it works is started again, and asked again. */
const ATTEMPTS = 3;

/** What does not fit a line the supervisor looks up by itself. */
const isShort = (secrets: SecretEnv): boolean => JSON.stringify(secrets).length < MAX_LINE_CHARS / 2;

/** Talks to this user's supervisor, starting it where a call needs one. */
export class SupervisorClient {
  readonly #options: ClientOptions;
  #awake: Promise<Connection> | undefined;
  readonly #asleep = new AbortController();
  /** A supervisor was asked to retire by this client. */
  #replaced = false;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /**
   * Begins to connect, starting a supervisor where there is none, while the caller does something else: the next call
   * finds it, and hears why there is none. `close` when no call may follow.
   */
  wake(signal: AbortSignal): void {
    this.#awake = this.#reachStarting(AbortSignal.any([signal, this.#asleep.signal]));
    this.#awake.catch(() => {});
  }

  /** Leaves what `wake` began, and no call has used; a supervisor that was started for it ends by itself. */
  close(): void {
    this.#asleep.abort();
    this.#awake?.then(
      ({ socket }) => socket.destroy(),
      () => {},
    );
    this.#awake = undefined;
  }

  /** Starts a saved workload, or what it is to be from now on, and waits until it can be used. */
  async start(
    name: string,
    {
      movable = false,
      secrets,
      begunBy,
      config,
      ...options
    }: CallOptions & Pick<StartRequest, 'movable' | 'secrets' | 'begunBy' | 'config'>,
  ): Promise<Endpoint> {
    const encoded = config && (await import('../run-config/run-config.ts')).encodeRunConfig(config);
    const request = {
      op: 'start',
      name,
      movable,
      ...(begunBy && { begunBy }),
      ...(secrets && isShort(secrets) ? { secrets } : {}),
      ...(encoded === undefined ? {} : { config: JSON.parse(encoded) as Record<string, unknown> }),
    } as const;
    return readEndpoint((await this.#call(request, options)).result);
  }

  /** False when it was not running. */
  async stop(name: string, graceMs: number, options: CallOptions): Promise<boolean> {
    const { result, attempts } = await this.#call({ op: 'stop', name, graceMs }, options);
    // Asked again it may have been stopped by the one that died.
    return (isRecord(result) && result['stopped'] === true) || attempts > 1;
  }

  /** Answers with where its data stays. */
  async remove(
    name: string,
    { data = false, ...options }: CallOptions & Removal,
  ): Promise<readonly string[]> {
    const { result } = await this.#call({ op: 'remove', name, data }, options);
    const stays = isRecord(result) ? result['stays'] : undefined;
    return Array.isArray(stays) ? stays.filter((one) => typeof one === 'string') : [];
  }

  /** Waits until everything that should run is hosted again, starting the supervisor for it. */
  async settle(options: CallOptions): Promise<void> {
    await this.#call({ op: 'settle' }, options);
  }

  /** Ends a supervisor that hosts nothing, with its watcher, and waits until both are gone; fine when there are none. */
  async rest(options: CallOptions): Promise<void> {
    const { places, uid, end, isAlive } = this.#options;
    const address = readAddress(places, uid);
    const gone = (process: ProcessIdentity): Promise<boolean> =>
      this.#until(() => !isAlive(process), START_MS, options.signal);
    let found = await this.#reach(options.signal);
    if (!found && address?.watcher && isAlive(address.watcher)) {
      // It waits to start a dead supervisor again, and has nothing to start it for; or has just done so.
      end(address.watcher.pid, 'SIGTERM');
      await gone(address.watcher);
      found = await this.#reach(options.signal);
    }
    if (found) {
      const result = await exchange(found, { op: 'rest' }, options);
      // One that hosts something stays, with its watcher.
      if (isRecord(result) && result['ending'] === false) return;
      await gone(found.process);
    }
    if (address?.watcher) await gone(address.watcher);
    if (!address || isAlive(address)) return;
    // What it left the next one clears away itself, if that comes up just now: it holds the lock.
    const waiting = { waitMs: 0, what: 'the supervisor', signal: options.signal };
    await unlessHeld(withLock(supervisorLock(places), waiting, () => clearAddress(places, uid)));
  }

  async #call(request: Request, options: CallOptions): Promise<{ result: unknown; attempts: number }> {
    for (let attempts = 1; ; attempts += 1) {
      const connecting = this.#awake ?? this.#reachStarting(options.signal);
      this.#awake = undefined;
      const connection = await connecting;
      try {
        return { result: await exchange(connection, request, options), attempts };
      } catch (error) {
        if (!hasCode(error, 'supervisor/unreachable') || options.signal.aborted || attempts === ATTEMPTS)
          throw error;
      }
    }
  }

  async #reachStarting(signal: AbortSignal): Promise<Connection> {
    const { places, uid, isAlive, woken } = this.#options;
    const found =
      (await this.#reachAble(signal)) ??
      // What was started before this client was is there no more when it had to wait too long.
      (await (woken && this.#arrival(woken.begin(), signal).finally(() => woken.lock.release())));
    if (found) return found;
    await ensureOwn(places, uid);
    // Of many commands at once one starts it, the others wait and find it.
    return withLock(
      startLock(places),
      { waitMs: OTHERS_START_MS, what: 'starting the supervisor', signal },
      async () => {
        const watcher = readAddress(places, uid)?.watcher;
        const watched = watcher !== undefined && isAlive(watcher);
        const found =
          (await this.#until(() => this.#reach(signal), watched ? WATCHER_MS : 0, signal)) ??
          (await this.#spawn(signal)) ??
          // It gave way to another one, which has ended since.
          (await this.#spawn(signal));
        if (found) return found;
        throw new SkepError('supervisor/unreachable', {
          message: 'the Skep supervisor did not come up',
          hint: `see "${places.supervisorLog}"`,
        });
      },
    );
  }

  /** One that is not in a group of this command may not reach what this command can, and is replaced, once. */
  async #reachAble(signal: AbortSignal): Promise<Connection | undefined> {
    const found = await this.#reach(signal);
    if (!found || this.#replaced || !this.#options.lacksGroups(found.process)) return found;
    return this.#retire(found, signal);
  }

  async #spawn(signal: AbortSignal): Promise<Connection | undefined> {
    return this.#arrival(await spawnSupervisor(this.#options), signal);
  }

  async #arrival(spawned: SpawnedSupervisor, signal: AbortSignal): Promise<Connection | undefined> {
    const { clock } = this.#options;
    const timeUp = new AbortController();
    const started = clock.elapsed();
    try {
      const late = clock.sleep(START_MS, AbortSignal.any([signal, timeUp.signal]));
      const word = await Promise.race([spawned.word, late]);
      if (word && 'error' in word) throw fromFailure(word.error);
      // Without a word it was killed: its watcher starts it again, until that gives up.
      let over = false;
      void spawned.over.then(() => (over = true));
      const left = START_MS - (clock.elapsed() - started);
      const up = await this.#until(async () => (await this.#reach(signal)) ?? over, left, signal);
      return typeof up === 'boolean' ? undefined : up;
    } finally {
      timeUp.abort();
    }
  }

  /** What `look` finds, once it finds something or `waitMs` are over. */
  async #until<T>(look: () => T | Promise<T>, waitMs: number, signal: AbortSignal): Promise<T> {
    const { clock } = this.#options;
    const deadline = clock.elapsed() + waitMs;
    for (;;) {
      const found = await look();
      if (found || clock.elapsed() >= deadline) return found;
      await clock.sleep(POLL_MS, signal);
    }
  }

  /**
   * A connection to a supervisor of this version; one of another version is asked to retire. Where commands of two
   * versions are at work, each would replace what the other has started: the newer version stays.
   */
  async #reach(signal: AbortSignal): Promise<Connection | undefined> {
    const found = await connect(this.#options);
    const { version } = this.#options.program;
    if (found === undefined || found.version === version) return found;
    if (!this.#replaced || compareVersions(version, found.version) > 0) return this.#retire(found, signal);
    found.socket.destroy();
    throw new SkepError('supervisor/unreachable', {
      message: `another command uses Skep ${found.version}; its supervisor stays, and this is the older Skep ${version}`,
      hint: 'use one version of Skep at a time; type -a skep shows where they are',
    });
  }

  /** Asks a supervisor to end; its workloads run on, and the next one takes them up. */
  async #retire(found: Connection, signal: AbortSignal): Promise<undefined> {
    this.#replaced = true;
    try {
      await exchange(found, { op: 'retire' }, { signal });
    } catch (error) {
      // It ended before it could answer, which is what it was asked for.
      if (!hasCode(error, 'supervisor/unreachable')) throw error;
    }
    return undefined;
  }
}
