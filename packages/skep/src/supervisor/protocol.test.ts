import { SkepError } from '@skep/core/errors/skep-error.ts';
import { assert, constantFrom, jsonValue, oneof, property, record } from 'fast-check';
import { expect, test } from 'vitest';
import { readAnswer, readEndpoint, type Answer } from './protocol.ts';

test.each<Answer>([
  { event: { kind: 'step', title: 'Starting' } },
  { event: { kind: 'warning', text: 'lost' } },
  { event: { kind: 'output', line: 'x' } },
  { event: { kind: 'told', text: 'x' } },
  { event: { kind: 'saved', name: 'a1', url: 'http://x' } },
  { error: { code: 'run/cancelled', message: 'm', hint: 'h', detail: { a: 1 } } },
  { result: { stopped: true } },
])('%j is read as it was written', (answer) => {
  expect(readAnswer(JSON.parse(JSON.stringify(answer)))).toEqual(answer);
});

test.each([
  { url: 'http://x', port: 1 },
  {
    url: 'http://x',
    port: 1,
    readiness: { is: 'answered', tools: { count: 2, tokens: 30, complete: true } },
  },
  { url: 'http://x', port: 1, readiness: { is: 'answered', server: 'x 1' } },
])('the endpoint %j is read as it was written', (endpoint) => {
  expect(readEndpoint(endpoint)).toEqual(endpoint);
});

test('anything else fails as what it is, whatever it may be', () => {
  const shape = oneof(
    jsonValue(),
    record({ event: record({ kind: constantFrom('step', 'saved', 'other') }) }),
    record({ error: jsonValue() }),
    record({ url: jsonValue(), port: jsonValue(), readiness: jsonValue() }),
  );
  assert(
    property(shape, (line) => {
      for (const read of [readAnswer, readEndpoint]) {
        try {
          read(line);
        } catch (error) {
          expect(error).toBeInstanceOf(SkepError);
          expect(error).toMatchObject({ code: 'supervisor/protocol' });
        }
      }
    }),
  );
});
