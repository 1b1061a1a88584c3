import type { Waiter } from '../backend/port.ts';
import type { AnswerHold } from '../call/call.ts';
import type { Response } from '../message/json-rpc.ts';

/** `waiter`, whose answer waits for what steps have to ask about it first. Where that fails, the answer is withheld. */
export function held(waiter: Waiter, holds: readonly AnswerHold[]): Waiter {
  if (holds.length === 0) return waiter;
  const release = async (reply: Response): Promise<void> => {
    try {
      for (const hold of holds) await hold(reply);
      waiter.finish(reply);
    } catch {
      waiter.fail('proxy/withheld');
    }
  };
  return {
    get carries() {
      return waiter.carries;
    },
    send: (message) => waiter.send(message),
    finish: (reply) => void release(reply),
    fail: (code, said) => waiter.fail(code, said),
  };
}
