import { type Decision, type Deny, enforce } from '../../access/decision.ts';

/** Words for some refusals, where the answer names the resource; all others keep the text of their code. */
export type RefusalWords = Readonly<Partial<Record<Deny['reason'], string>>>;

/** Throws the error of a refusal. */
export function enforceWith(decision: Decision, words: RefusalWords): void {
  enforce(decision, decision.allowed ? undefined : words[decision.reason]);
}
