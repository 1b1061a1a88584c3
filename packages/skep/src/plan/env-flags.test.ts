import { describe, expect, test } from 'vitest';
import { readEnvFlags } from './env-file.ts';

const mine = { TOKEN: 'hush', EMPTY: '', GONE: undefined };

describe('variables of -e', () => {
  test.each<[readonly string[], Record<string, string>]>([
    [[], {}],
    [['A=1', 'B=x=y', 'C='], { A: '1', B: 'x=y', C: '' }],
    [['A=1', 'A=2'], { A: '2' }],
    [['TOKEN', 'EMPTY'], { TOKEN: 'hush', EMPTY: '' }],
    [['TOKEN=other'], { TOKEN: 'other' }],
    [['__proto__=1'], Object.fromEntries([['__proto__', '1']])],
  ])('%j', (items, variables) => {
    expect(readEnvFlags(items, mine)).toEqual(variables);
  });

  test.each(['NOT_SET', 'GONE', '=x', 'a b=c', ''])('%j is refused', (item) => {
    expect(() => readEnvFlags([item], mine)).toThrow(expect.objectContaining({ code: 'run/invalid-env' }));
  });
});
