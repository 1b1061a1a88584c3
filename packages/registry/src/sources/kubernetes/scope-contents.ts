import { isRecord } from '@skep/core/json/is-record.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Scope } from './cluster-client.ts';
import { type Derived, type DeriveLimits, deriveServer } from './derive-entry.ts';
import { Held, type Room } from './room.ts';

export interface ContentLimits extends DeriveLimits {
  /** Bytes of all documents together. */
  readonly maxCatalogueSize: number;
}

export interface Listing {
  readonly add: (objects: readonly unknown[]) => void;
  readonly finish: () => void;
  readonly abandon: () => void;
}

/** What one scope holds now, as far as its objects ask to be shown. */
export class ScopeContents {
  readonly scope: Scope;
  readonly #limits: ContentLimits;
  readonly #room: Room;
  #held: Held;
  /** Whether it was ever read whole. */
  isRead = false;
  /** Whether asking for it has ended in any way. */
  isTried = false;
  /** Why it cannot be followed now. */
  fault: string | undefined;

  constructor(scope: Scope, limits: ContentLimits, room: Room) {
    this.scope = scope;
    this.#limits = limits;
    this.#room = room;
    this.#held = new Held(room);
  }

  /** By namespace and name, `namespace/name`. */
  get derived(): ReadonlyMap<string, Derived> {
    return this.#held.derived;
  }

  /** Why objects were left out since the last list; one that takes their place is only seen by the next list. */
  get excess(): string | undefined {
    if (!this.#held.isOver) return undefined;
    return `the source describes more than ${this.#room.most} bytes; some objects are left out`;
  }

  /** Begins a new list beside what is known; `finish` puts it in the place of that, `abandon` forgets it. */
  listing(): Listing {
    const listed = new Held(this.#room, this.#held.derived);
    return {
      add: (objects) => {
        for (const object of objects) this.#put(listed, object);
      },
      finish: () => {
        this.#held = listed.replaceFormer();
        this.isRead = true;
      },
      abandon: () => listed.abandon(),
    };
  }

  /** Takes over one object; whether that changed anything that is shown or reported. */
  put(object: unknown): boolean {
    return this.#put(this.#held, object);
  }

  remove(object: unknown): boolean {
    const key = isRecord(object) ? keyOf(object) : undefined;
    return key !== undefined && this.#held.delete(key);
  }

  #put(into: Held, object: unknown): boolean {
    const { metadata, spec } = isRecord(object) ? object : {};
    const key = isRecord(object) ? keyOf(object) : undefined;
    if (key === undefined || !isRecord(metadata)) throw new SkepError('source/bad-answer', NAMELESS);
    const [namespace = '', name = ''] = key.split('/');
    if ((this.scope.namespace ?? namespace) !== namespace)
      throw new SkepError('source/bad-answer', ELSEWHERE);
    const { kind } = this.scope.kind;
    const derived = deriveServer({ kind, namespace, name, metadata, spec }, this.#limits);
    return derived === undefined ? into.delete(key) : into.set(key, derived);
  }
}

const NAMELESS = { message: 'the cluster sent an object without a name or namespace' };
const ELSEWHERE = { message: 'the cluster sent an object of another namespace than it was asked for' };

/** Undefined for what has no name and namespace, or one that would be something else in an entry. */
function keyOf({ metadata }: Readonly<Record<string, unknown>>): string | undefined {
  const { namespace, name } = isRecord(metadata) ? metadata : {};
  if (typeof namespace !== 'string' || typeof name !== 'string') return undefined;
  return /^[^/]+\/[^/]+$/.test(`${namespace}/${name}`) ? `${namespace}/${name}` : undefined;
}
