import { describe, expect, test } from 'vitest';
import { claimsChange } from './admin-route.ts';

describe('claimsChange', () => {
  test.each([
    ['a new one with claims', undefined, '{"org":["acme"]}', { facts: { claims_after: { org: 'acme' } } }],
    ['a new one without', undefined, '', { facts: { claims_after: {} } }],
    [
      'widened access',
      '{"org":["acme"],"team":["a","b"]}',
      '',
      { facts: { claims_before: { org: 'acme', team: ['a', 'b'] }, claims_after: {} } },
    ],
    ['no change', '{"org":["acme"]}', '{"org":["acme"]}', {}],
  ])('tells of %s', (...[, before, after, expected]) => {
    expect(claimsChange(before, after)).toEqual(expected);
  });
});
