import type { Identity } from '@skep/auth/token/identity.ts';

export type Kind = 'tool' | 'prompt' | 'resource';

/** What is done with each kind: the operation, and the action that policies name. */
export const OPERATIONS = {
  tool: { operation: 'call', action: 'call_tool' },
  prompt: { operation: 'get', action: 'get_prompt' },
  resource: { operation: 'read', action: 'read_resource' },
} as const satisfies Readonly<Record<Kind, { readonly operation: string; readonly action: string }>>;

/** What a server says of a tool (MCP, tool annotations); absent where it did not. */
export const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const;
export type Hints = { readonly [Hint in (typeof HINTS)[number]]?: boolean };

/** May somebody use this? */
export interface Question {
  readonly kind: Kind;
  /** Name of a tool or prompt, URI of a resource, as the server knows it. */
  readonly id: string;
  /** The raw JSON text of the arguments of a call. */
  readonly args?: string | undefined;
  /** Of a tool, as far as the server told. */
  readonly hints?: Hints | undefined;
}

/** Answers for one caller. Never fails: what cannot be decided is denied. */
export type Decide = (question: Question) => boolean | Promise<boolean>;

/** Decides who may use what. */
export interface Authorizer {
  readonly decideFor: (identity: Identity) => Decide;
  /** Decisions may depend on hints. */
  readonly heedsHints?: boolean;
  /** Idempotent. */
  readonly close?: () => void;
}
