import { expect, test } from 'vitest';
import { BodyBudget } from './body-budget.ts';

test('the oldest body gives way, and what it held is free', () => {
  const budget = new BodyBudget(100);
  const gone: string[] = [];
  const giving = (name: string) => ({ giveWay: () => void gone.push(name) });
  const held = ['a', 'b', 'c'].map((name) => budget.hold(giving(name)));
  for (const body of held) body.add(30);
  expect(gone).toEqual([]);
  held[2]?.add(30);
  expect(gone).toEqual(['a']);
  held[0]?.add(1_000);
  held[1]?.release();
  held[1]?.release();
  held[2]?.add(40);
  expect(gone).toEqual(['a']);
});

test('a body that alone is too much gives way itself', () => {
  const budget = new BodyBudget(100);
  const gone: string[] = [];
  const giving = (name: string) => ({ giveWay: () => void gone.push(name) });
  const empty = budget.hold(giving('empty'));
  budget.hold(giving('large')).add(101);
  expect(gone).toEqual(['large']);
  empty.release();
});
