import { expect, test } from 'vitest';
import { notification } from '../message/json-rpc.ts';
import { sharedBodyOf } from './event.ts';

test('a message that goes to many streams is encoded once', () => {
  const message = notification('x/y', { text: 'é' });
  expect(sharedBodyOf(message)).toBe(sharedBodyOf(message));
  expect(sharedBodyOf(message).toString('utf8')).toBe(`event: message\ndata: ${message.text}\n\n`);
});
