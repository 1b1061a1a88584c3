import type { SignInSlot } from '../api/sign-in/sign-in.ts';
import type { RegistryConfig } from '../config/load.ts';
import type { ReadEngine } from '../engine/read-engine.ts';
import type { Limits } from '../shape/limits.ts';
import type { OpenedStore } from '../store/open-store.ts';
import type { Catalogue } from './catalogue.ts';
import type { Operations } from './operations.ts';

/** A registry while it starts, runs and stops: what is not there yet is undefined. A reload replaces parts of it. */
export interface Running {
  /** The newest that was taken over. */
  config: RegistryConfig;
  /** Those of it, as far as they can be taken over. */
  limits: Limits;
  /** It serves, and was not asked to stop. */
  isReady: boolean;
  /** The reload that runs. */
  reloading?: Promise<unknown> | undefined;
  readonly engine: ReadEngine;
  readonly signIn: SignInSlot;
  store?: OpenedStore;
  operations?: Operations;
  catalogue?: Catalogue;
  /** Where it is reached, once it is. */
  urls?: { readonly public: string; readonly internal: string };
}
