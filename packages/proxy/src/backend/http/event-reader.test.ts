import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { EventReader, type ServerEvent } from './event-reader.ts';

test.each([
  ['data: a\n\n', [{ id: undefined, data: 'a' }]],
  ['data:a\r\n\r\ndata: b\r\rdata:  c\n\n', ['a', 'b', ' c'].map((data) => ({ id: undefined, data }))],
  ['id: 1\ndata: a\ndata: b\n\n', [{ id: '1', data: 'a\nb' }]],
  [
    'id: 1\ndata:\n\ndata: a\n\n',
    [
      { id: '1', data: '' },
      { id: '1', data: 'a' },
    ],
  ],
  ['id: 1\0\ndata: a\n\n', [{ id: undefined, data: 'a' }]],
  [': comment\n\nevent: x\nretry: 5\n\n\n', []],
  ['data: unfinished\n', []],
] as const)('%j', (text, events) => {
  expect(new EventReader().push(text)).toEqual(events);
});

test('an event is the same in whatever pieces it comes', () => {
  const piece = fc.constantFrom(
    'data: a',
    'data:',
    'id: 7',
    ':',
    '\n',
    '\r\n',
    '\r',
    '\n\n',
    'x',
    'data: "é"',
  );
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 30 }),
      fc.array(fc.nat(60), { maxLength: 6 }),
      (pieces, cuts) => {
        const text = `${pieces.join('')}.`;
        const reader = new EventReader();
        const found: ServerEvent[] = [];
        const at = [
          0,
          ...cuts.map((cut) => Math.min(cut, text.length)).toSorted((a, b) => a - b),
          text.length,
        ];
        for (let n = 1; n < at.length; n += 1) found.push(...reader.push(text.slice(at[n - 1], at[n])));
        expect(found).toEqual(new EventReader().push(text));
      },
    ),
  );
});

test('an event without end is not kept', () => {
  const reader = new EventReader();
  const megabytes = 'x'.repeat(8 * 1024 * 1024);
  expect(() => {
    for (let n = 0; n < 9; n += 1) reader.push(`data: ${megabytes}\n`);
  }).toThrow(expect.objectContaining({ code: 'bridge/unreadable' }));
});
