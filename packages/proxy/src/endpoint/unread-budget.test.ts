import { expect, test } from 'vitest';
import { UnreadBudget, type Reader } from './unread-budget.ts';

const reader = (budget: UnreadBudget) => {
  const cuts: string[] = [];
  const state = { unread: 0 };
  const self: Reader = {
    get unread() {
      return state.unread;
    },
    cut: () => void cuts.push('cut'),
  };
  const leave = (bytes: number): void => {
    state.unread = bytes;
    budget.update(self);
  };
  return { cuts, state, leave, gone: () => budget.release(self) };
};

test('the reader that leaves most unread is cut first, and only as many as needed', () => {
  const budget = new UnreadBudget(100);
  const [small, large, writer] = [reader(budget), reader(budget), reader(budget)];
  small.leave(20);
  large.leave(60);
  writer.leave(30);
  expect([small.cuts, large.cuts, writer.cuts]).toEqual([[], ['cut'], []]);
});

test('what was read meanwhile does not count, even when nobody reported it', () => {
  const budget = new UnreadBudget(100);
  const [caughtUp, other] = [reader(budget), reader(budget)];
  caughtUp.leave(90);
  caughtUp.state.unread = 5;
  other.leave(80);
  expect([caughtUp.cuts, other.cuts]).toEqual([[], []]);
});

test('a reader that is gone does not count', () => {
  const budget = new UnreadBudget(100);
  const [gone, other] = [reader(budget), reader(budget)];
  gone.leave(90);
  gone.gone();
  other.leave(90);
  expect([gone.cuts, other.cuts]).toEqual([[], []]);
});

test('one large answer is no reason to cut the only reader', () => {
  const alone = reader(new UnreadBudget(100));
  alone.leave(1_000);
  expect(alone.cuts).toEqual([]);
});
