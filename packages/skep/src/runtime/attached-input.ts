import { Writable, type Duplex } from 'node:stream';

/**
 * The stdin side of an attachment. Ending it does not end the workload's input. A write that fails tells its own
 * callback; the stream itself is destroyed without an `error` event, because the end of stdout already says that the
 * attachment is over and an unhandled event would take the supervisor down.
 */
export class AttachedInput extends Writable {
  readonly #target: Duplex;

  constructor(target: Duplex) {
    super({ decodeStrings: false });
    this.#target = target;
  }

  override _write(
    chunk: Buffer | string,
    encoding: BufferEncoding,
    done: (error?: Error | null) => void,
  ): void {
    this.#target.write(chunk, encoding, (error) => {
      if (error) this.destroy();
      done(error);
    });
  }
}
