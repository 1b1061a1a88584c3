import type { ArrayMatch } from '@skep/auth/claims/covers.ts';

/** Where an operator may make access stricter, or looser, than it is by default (docs/behaviour/registry.md#switches). */
export interface Switches {
  /** a publish request must carry claims. */
  readonly requirePublishClaims: boolean;
  /** registries and sources without claims are open to every signed-in caller, or to super-admins only. */
  readonly unlabeled: 'open' | 'deny';
  /** what a list in an existing resource's claims needs of a caller. New claims always need all of it. */
  readonly arrayMatch: ArrayMatch;
  /** publishers must also satisfy the claims of the managed source. */
  readonly managedSourceGate: boolean;
}

export const CONTRACT_SWITCHES: Switches = {
  requirePublishClaims: false,
  unlabeled: 'open',
  arrayMatch: 'all',
  managedSourceGate: false,
};

export const STRICT_SWITCHES: Switches = {
  requirePublishClaims: true,
  unlabeled: 'deny',
  arrayMatch: 'any',
  managedSourceGate: true,
};

/** Switches as `auth.authz` of the configuration holds them; each single one overrides the preset. */
export type SwitchSettings = { readonly [Name in keyof Switches]?: Switches[Name] | undefined } & {
  readonly preset?: 'strict' | undefined;
};

export function resolveSwitches(settings: SwitchSettings): Switches {
  const base = settings.preset === 'strict' ? STRICT_SWITCHES : CONTRACT_SWITCHES;
  return {
    requirePublishClaims: settings.requirePublishClaims ?? base.requirePublishClaims,
    unlabeled: settings.unlabeled ?? base.unlabeled,
    arrayMatch: settings.arrayMatch ?? base.arrayMatch,
    managedSourceGate: settings.managedSourceGate ?? base.managedSourceGate,
  };
}
