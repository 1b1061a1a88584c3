import type { Listener } from '../backend/stdio/peer.ts';
import { throughHooks, type ReplyHook } from '../call/call.ts';
import type { Message } from '../message/json-rpc.ts';
import { sharedBodyOf } from './event.ts';
import type { EventStream } from './stream.ts';

/** The stream of a GET: what the server says without being asked. */
export class StandaloneStream implements Listener {
  readonly stream: EventStream;
  readonly #hooks: readonly ReplyHook[];

  constructor(stream: EventStream, hooks: readonly ReplyHook[]) {
    this.stream = stream;
    this.#hooks = hooks;
  }

  get live(): boolean {
    return this.stream.live;
  }

  send(message: Message): void {
    const passed = throughHooks(this.#hooks, { message, request: undefined });
    if (passed !== undefined) this.stream.send(sharedBodyOf(passed));
  }
}
