import { UnreadBudget } from './endpoint/unread-budget.ts';
import { BodyBudget } from './steps/body-budget.ts';

/** What all proxies of one process may hold together. */
export interface Budgets {
  readonly bodies: BodyBudget;
  readonly unread: UnreadBudget;
}

export function newBudgets(): Budgets {
  return { bodies: new BodyBudget(), unread: new UnreadBudget() };
}
