import { describe, expect, test } from 'vitest';
import { ANONYMOUS } from './authority.ts';
import { caller, claims, signedIn, superAdmin } from './callers.fixture.ts';
import { type Decision, satisfiesExisting } from './decision.ts';
import { decidePublish, decideRelabel, type PublishRequest } from './publish-rules.ts';

const codeOf = (decision: Decision): string => (decision.allowed ? 'allowed' : decision.code);
const token = { role: 'writer', org: 'acme', team: 'platform' };
const writer = caller(token);
const platform = claims({ org: 'acme', team: 'platform' });
const data = claims({ org: 'acme', team: 'data' });
const none = claims({});
const open = { claims: none };

const first = (held: PublishRequest['claims'], target: PublishRequest['target'] = open): PublishRequest => ({
  claims: held,
  target,
  entry: undefined,
});
const later = (
  was: PublishRequest['claims'],
  held: PublishRequest['claims'],
  hasVersion = false,
): PublishRequest => ({
  claims: held,
  target: open,
  entry: { claims: was, hasVersion },
});

describe('publishing', () => {
  test.each([
    ['the first version with claims the publisher holds', writer, first(platform), 'allowed'],
    ['the first version without claims', writer, first(none), 'allowed'],
    ['with claims of another team', writer, first(data), 'access/insufficient-claims'],
    ['with a claim the publisher lacks', writer, first(claims({ dept: 'x' })), 'access/insufficient-claims'],
    [
      'with a list of which one is held',
      writer,
      first(claims({ team: ['platform', 'data'] })),
      'access/insufficient-claims',
    ],
    ['any claims as super-admin', superAdmin(), first(data), 'allowed'],
    ['any claims in auth-only mode', signedIn({}), first(data), 'allowed'],
    ['any claims in anonymous mode', ANONYMOUS, first(data), 'allowed'],
    ['where no source is managed', writer, { ...first(none), target: undefined }, 'access/no-managed-source'],
    ['a later version with the same claims', writer, later(platform, platform), 'allowed'],
    [
      'a later version with a list of the same',
      writer,
      later(platform, claims({ team: ['platform'], org: 'acme' })),
      'allowed',
    ],
    [
      'a later version with fewer claims',
      writer,
      later(platform, claims({ org: 'acme' })),
      'access/claims-mismatch',
    ],
    ['a later version that omits the claims', writer, later(platform, none), 'access/claims-mismatch'],
    ['a later version that adds claims', writer, later(none, platform), 'access/claims-mismatch'],
    ['other claims as super-admin', superAdmin(), later(platform, data), 'access/claims-mismatch'],
    ['other claims in auth-only mode', signedIn({}), later(platform, data), 'access/claims-mismatch'],
    ['the same version again', writer, later(platform, platform, true), 'access/version-exists'],
  ])('%s', (_rule, authority, request, expected) => {
    expect(codeOf(decidePublish(authority, request))).toBe(expected);
  });

  test.each([
    [
      'claims not held come before a missing source',
      writer,
      { ...first(data), target: undefined },
      'access/insufficient-claims',
    ],
    ['claims not held come before other claims', writer, later(platform, data), 'access/insufficient-claims'],
    [
      'other claims come before a taken version',
      writer,
      later(platform, none, true),
      'access/claims-mismatch',
    ],
  ])('order: %s', (_rule, authority, request, expected) => {
    expect(codeOf(decidePublish(authority, request))).toBe(expected);
  });

  test.each([
    ['needs claims', caller(token, { requirePublishClaims: true }), first(none), 'access/claims-required'],
    [
      'needs claims of super-admins too',
      superAdmin({ requirePublishClaims: true }),
      first(none),
      'access/claims-required',
    ],
    ['is satisfied by one claim', caller(token, { requirePublishClaims: true }), first(platform), 'allowed'],
    ['ignores the source by default', writer, first(platform, { claims: data }), 'allowed'],
    [
      'needs the claims of the source',
      caller(token, { managedSourceGate: true }),
      first(platform, { claims: data }),
      'access/insufficient-claims',
    ],
    [
      'is satisfied by them',
      caller(token, { managedSourceGate: true }),
      first(platform, { claims: platform }),
      'allowed',
    ],
    [
      'leaves a source without claims to super-admins',
      caller(token, { managedSourceGate: true }),
      first(platform),
      'access/unlabeled',
    ],
    ['lets super-admins pass', superAdmin({ managedSourceGate: true }), first(platform), 'allowed'],
    [
      'any does not loosen new claims',
      caller(token, { arrayMatch: 'any' }),
      first(claims({ team: ['platform', 'x'] })),
      'access/insufficient-claims',
    ],
  ])('switch: %s', (_rule, authority, request, expected) => {
    expect(codeOf(decidePublish(authority, request))).toBe(expected);
  });
});

describe('deleting a version or reading the claims of an entry', () => {
  test.each([
    ['its own', writer, platform, 'allowed'],
    ['of another team', writer, data, 'access/insufficient-claims'],
    ['without claims', writer, none, 'allowed'],
    ['without claims in strict', caller(token, { preset: 'strict' }), none, 'access/unlabeled'],
    ['without claims in strict as super-admin', superAdmin({ preset: 'strict' }), none, 'allowed'],
    ['of another team in anonymous mode', ANONYMOUS, data, 'allowed'],
  ])('%s', (_rule, authority, held, expected) => {
    expect(codeOf(satisfiesExisting(authority, held))).toBe(expected);
  });
});

describe('replacing the claims of an entry', () => {
  test.each([
    ['its own', writer, platform, claims({ org: 'acme' }), 'allowed'],
    ['with claims not held', writer, platform, data, 'access/insufficient-claims'],
    ['of another team', writer, data, platform, 'access/insufficient-claims'],
    ['clearing them hides the entry and is allowed', writer, platform, none, 'allowed'],
    ['clearing them in strict', caller(token, { preset: 'strict' }), platform, none, 'access/unlabeled'],
    ['clearing them in strict as super-admin', superAdmin({ preset: 'strict' }), platform, none, 'allowed'],
    ['an entry without claims', writer, none, platform, 'allowed'],
  ])('%s', (...[, authority, existing, next, expected]) => {
    expect(codeOf(decideRelabel(authority, existing, next))).toBe(expected);
  });
});
