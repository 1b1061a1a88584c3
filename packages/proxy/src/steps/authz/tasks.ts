import { LRUCache } from 'lru-cache';

/** Tasks whose owner is remembered: the newest. */
const MAX_TASKS = 10_000;
const MAX_ID_CHARACTERS = 1024;

/** Where an answer has the name of a task, in MCP 2025-11-25 and in the extension of later revisions. */
export const TASK_ID = [
  ['result', 'task', 'taskId'],
  ['result', 'taskId'],
];

/** Who started which task: nobody else asks after it. */
export class TaskOwners {
  readonly #owners = new LRUCache<string, true>({ max: MAX_TASKS });

  claim(taskId: unknown, principal: string): void {
    if (typeof taskId === 'string' && taskId.length <= MAX_ID_CHARACTERS)
      this.#owners.set(keyOf(taskId, principal), true);
  }

  forget(): void {
    this.#owners.clear();
  }

  owns(taskId: unknown, principal: string): boolean {
    return typeof taskId === 'string' && this.#owners.get(keyOf(taskId, principal)) === true;
  }
}

/** A server chooses the names, so one that it gives to two is both's. */
function keyOf(taskId: string, principal: string): string {
  return JSON.stringify([taskId, principal]);
}
