import { errorOf, memberAt, type Message } from '../message/json-rpc.ts';
import { ListReader } from '../message/list-answer.ts';
import type { Call } from '../call/call.ts';
import type { Step } from '../call/chain.ts';
import { principalOf } from '../call/principal.ts';
import { refuse, rpcFailure } from '../call/refuse.ts';
import { itemOf } from './authz/list-items.ts';
import { LISTS, needOf } from './authz/methods.ts';
import { TASK_ID, TaskOwners } from './authz/tasks.ts';

const LIST = 'tasks/list';

/** Keeps apart whose tasks are whose, for a server that sees one client where many sign in: one behind a pipe. */
export interface OwnTasks {
  /** Around the row `transport`: a task that somebody else started is not there. */
  readonly step: Step;
  /** The server was started anew, and may give its names to others. */
  readonly forget: () => void;
}

/** Also where no policies are (`Gate` of authorization.ts does the same by them). */
export function ownTasks(): OwnTasks {
  const owners = new TaskOwners();
  const shape = LISTS.get(LIST);
  const reader = shape && new ListReader(shape.member, (text) => itemOf(text, shape)?.id);
  const shown = (answer: Extract<Message, { kind: 'response' }>, principal: string): Message | undefined => {
    if (answer.failed) return answer;
    const read = reader?.read(answer);
    return read?.with(read.items.map((taskId) => owners.owns(taskId, principal)));
  };
  return {
    forget: () => owners.forget(),
    async step(call, next) {
      const { incoming, identity, replyHooks } = call;
      const sent = incoming?.message;
      if (sent === undefined || sent.kind === 'response' || identity === undefined) return next();
      const principal = principalOf(identity);
      const { method } = sent;
      if (method === LIST)
        replyHooks.push(({ message }) => (message.kind === 'response' ? shown(message, principal) : message));
      else if (method === 'tools/call')
        replyHooks.push(({ message }) => {
          if (message.kind === 'response')
            for (const path of TASK_ID) owners.claim(memberAt(message.value, path), principal);
          return message;
        });
      else if (method.startsWith('tasks/')) {
        const need = needOf(sent);
        if (need.kind !== 'task' || !owners.owns(need.taskId, principal)) {
          answerNoTask(call, sent);
          return;
        }
      }
      await next();
    },
  };
}

function answerNoTask(call: Call, sent: Exclude<Message, { kind: 'response' }>): void {
  const code = 'proxy/task-unknown';
  if (sent.kind === 'notification') refuse(call.res, 'proxy/not-json-rpc');
  else if (call.answerer === undefined) refuse(call.res, code, { id: sent.id });
  else {
    const { id, method } = sent;
    call.answerer.answer(call, { id, method }, errorOf(id, rpcFailure(code)));
  }
}
