import { expect, test } from 'vitest';
import { errorOf, resultOf, type Response } from '../../message/json-rpc.ts';
import { errorLabel } from './attributes.ts';

const labelOf = (status: number | undefined, answer?: Response): string | undefined =>
  errorLabel({ status, unheard: undefined, answer, refusal: undefined, bytes: 0, ms: 0 });

test.each([-32_700, -32_603, -32_000, 403])('the code %d has a label of its own', (code) => {
  expect(labelOf(200, errorOf('1', { code, message: 'x' }))).toBe(String(code));
});

test.each([1, -1, 3.5, -32_099, 1e300])('the code %d, which means nothing, shares one', (code) => {
  expect(labelOf(200, errorOf('1', { code, message: 'x' }))).toBe('_OTHER');
});

test('what is told by no code is labelled as it is', () => {
  expect(labelOf(200, resultOf('1', '{}'))).toBeUndefined();
  expect(labelOf(200, resultOf('1', '{"isError":true}'))).toBe('tool_error');
  expect([labelOf(502), labelOf(undefined)]).toEqual(['502', 'incomplete']);
});
