import { isRecord } from '@skep/core/json/is-record.ts';
import type { Ability } from '../../message/client-abilities.ts';
import {
  memberAt,
  notification,
  requestOf,
  type JsonObject,
  type Message,
  type Notification,
  type Request,
} from '../../message/json-rpc.ts';
import { LISTEN_FILTERS, METHODS } from '../../message/methods.ts';
import { awaited, type BackendPort, type Peer, type Waiter } from '../port.ts';
import { oldestOfMost } from './give-way.ts';
import { onStream, streamEnd } from './modern-form.ts';

/** Resources that one request may listen to. */
const MAX_URIS = 1000;
/** Streams that are open at once; the oldest of the principal with most gives way. */
const MAX_STREAMS = 1024;
/** What comes before a stream has begun waits for it. */
const MAX_EARLY = 100;

const ABLE_TO_NOTHING: ReadonlySet<Ability> = new Set();

interface Wanted {
  readonly filters: ReadonlySet<string>;
  readonly methods: ReadonlySet<string>;
  readonly uris: readonly string[];
}

/** `subscriptions/listen` of modern clients towards a legacy server, which tells its sessions unasked or by subscription. */
export class Listens {
  readonly #port: BackendPort;
  /** Those that are open, with what ends them. */
  readonly #open = new Map<Peer, () => void>();

  constructor(port: BackendPort) {
    this.#port = port;
  }

  /** Opens a stream on `waiter`. Gives back what ends what it heard of, to be called when its client has gone. */
  open(caller: Peer, request: Request, waiter: Waiter, agreed: JsonObject): () => void {
    const wanted = wantedBy(request, agreed);
    if (typeof wanted === 'string') {
      waiter.fail(wanted);
      return () => {};
    }
    const { id } = request;
    let early: Notification[] | undefined = [];
    const say = (message: Notification): void => waiter.send(onStream(message, id));
    const leave = (): void => {
      this.#open.delete(peer);
      this.#port.leave(peer);
    };
    const end = (): void => {
      leave();
      waiter.finish(streamEnd(id));
    };
    const peer: Peer = {
      kind: 'listener',
      key: caller.key,
      abilities: ABLE_TO_NOTHING,
      logLevel: undefined,
      unanswered: 0,
      forgotten: end,
      listener: {
        get live() {
          return waiter.carries;
        },
        send(message: Message) {
          if (message.kind !== 'notification' || !isWanted(message, wanted)) return;
          if (early === undefined) say(message);
          else if (early.length < MAX_EARLY) early.push(message);
        },
      },
    };
    this.#port.join(peer);
    this.#open.set(peer, end);
    if (this.#open.size > MAX_STREAMS) {
      const [, giveWay] = oldestOfMost([...this.#open], ([{ key }]) => key) ?? [];
      giveWay?.();
    }
    void this.#subscribe(peer, wanted.uris).then((uris) => {
      const honoured = {
        ...Object.fromEntries([...wanted.filters].map((name) => [name, true])),
        ...(uris.length > 0 && { resourceSubscriptions: uris }),
      };
      say(notification(METHODS.listening, { notifications: honoured }));
      for (const message of early ?? []) say(message);
      early = undefined;
      if (Object.keys(honoured).length === 0) end();
    });
    return leave;
  }

  /** Resolves with those that the server agreed to. */
  async #subscribe(peer: Peer, uris: readonly string[]): Promise<readonly string[]> {
    const tried = uris.map(async (uri) => {
      const { promise, waiter } = awaited();
      this.#port.request(peer, requestOf('0', METHODS.subscribe, { uri }), waiter);
      const reply: unknown = JSON.parse(await promise);
      return isRecord(reply) && 'result' in reply ? [uri] : [];
    });
    const done = await Promise.allSettled(tried);
    return done.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
  }
}

/** What of it the server has; a code where it says nothing that can be read. */
function wantedBy(request: Request, { capabilities }: JsonObject): Wanted | 'proxy/filter-invalid' {
  const asked = memberAt(request.value, ['params', 'notifications']);
  if (!isRecord(asked)) return 'proxy/filter-invalid';
  const { resourceSubscriptions = [] } = asked;
  if (!Array.isArray(resourceSubscriptions) || resourceSubscriptions.length > MAX_URIS)
    return 'proxy/filter-invalid';
  const uris = resourceSubscriptions.filter((uri: unknown): uri is string => typeof uri === 'string');
  if (uris.length < resourceSubscriptions.length) return 'proxy/filter-invalid';
  const given = [...LISTEN_FILTERS].filter(
    ([name, { capability }]) =>
      asked[name] === true && memberAt(capabilities, [capability, 'listChanged']) === true,
  );
  return {
    filters: new Set(given.map(([name]) => name)),
    methods: new Set(given.map(([, { method }]) => method)),
    uris: memberAt(capabilities, ['resources', 'subscribe']) === true ? [...new Set(uris)] : [],
  };
}

/** Updates are of what this one subscribed to, by the mux. */
function isWanted({ method }: Notification, { methods, uris }: Wanted): boolean {
  return method === METHODS.resourceUpdated ? uris.length > 0 : methods.has(method);
}
