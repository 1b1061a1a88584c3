/** The group of workloads that were given none; it is always there. */
export const DEFAULT_GROUP = 'default';

const MAX_LENGTH = 100;
const WORDS = /^[a-z0-9_-]+(?: [a-z0-9_-]+)*$/;

/** True when `name` may name a group and its file (docs/behaviour/run.md#groups). */
export function isGroupName(name: string): boolean {
  return name.length <= MAX_LENGTH && WORDS.test(name);
}
