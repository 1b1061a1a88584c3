import { expect, test } from 'vitest';
import { tokensOfTool, tokensText } from './tool-weight.ts';

test('a tool weighs what a model is handed of it, and nothing else counts', () => {
  const tool = { name: 'add', description: 'x'.repeat(100), inputSchema: { type: 'object' } };
  const more = { ...tool, outputSchema: { type: 'object' }, icons: ['y'.repeat(1000)] };
  expect(tokensOfTool(tool)).toBe(Math.ceil(JSON.stringify(tool).length / 4));
  expect(tokensOfTool(more)).toBe(tokensOfTool(tool));
  expect(tokensOfTool({ name: 'n' })).toBe(3);
});

test.each([
  [0, '~0 tokens'],
  [999, '~999 tokens'],
  [1000, '~1.0 k tokens'],
  [9_849, '~9.8 k tokens'],
  [99_949, '~99.9 k tokens'],
  [99_950, '~100 k tokens'],
  [2_345_678, '~2346 k tokens'],
])('%d tokens are called %s', (tokens, text) => {
  expect(tokensText(tokens)).toBe(text);
});
