import { expect, test } from 'vitest';
import { compiledWhole } from './compiled-whole.ts';

test('top-level functions stand in parentheses, before everything else, and nothing else changes', () => {
  const code = [
    'import{a}from"./a.js";let first=second(1);',
    'function second(n){function inner(){return n}return inner()}',
    'async function*third(){}',
    'const fourth=(n)=>n+"ä",fifth=function(){},sixth=[()=>1];',
    'class Seventh{eighth(){}}export{second,fourth};',
  ].join('');
  expect(compiledWhole(code)).toBe(
    [
      'var second=(function second(n){function inner(){return n}return inner()});',
      'var third=(async function*third(){});',
      'import{a}from"./a.js";let first=second(1);;;',
      'const fourth=((n)=>n+"ä"),fifth=(function(){}),sixth=[()=>1];',
      'class Seventh{eighth(){}}export{second,fourth};',
    ].join(''),
  );
});

test('a function can be called before the place where it was declared', async () => {
  const code = 'export const called=later(2);function later(n){return n+1}';
  const module = `data:text/javascript,${encodeURIComponent(compiledWhole(code))}`;
  expect(await import(/* @vite-ignore */ module)).toMatchObject({ called: 3 });
});

test('a function that something may be assigned to stays as it is', () => {
  for (const assigning of ['f=()=>2', '[f]=[1]', '({a:f}={a:1})', 'f++', 'for(f of[])0'])
    expect(compiledWhole(`function f(){${assigning}}`)).toBe(`function f(){${assigning}}`);
});

test('what stands before and behind a function stays two statements', () => {
  expect(compiledWhole('let a=1\nfunction b(){}\n(c)()')).toBe('var b=(function b(){});let a=1\n;\n(c)()');
});
