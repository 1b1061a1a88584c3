/** The part of autocannon 9 that the benches use; the package ships no types. */
declare module 'autocannon' {
  export interface Options {
    readonly url: string;
    readonly method?: 'GET' | 'POST';
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
    readonly connections?: number;
    /** Seconds. */
    readonly duration?: number;
    /** Requests in all, instead of a time. */
    readonly amount?: number;
    /** What each connection sends, in turn; in place of method, headers and body. */
    readonly requests?: readonly Request[];
  }

  export interface Request {
    readonly method?: 'GET' | 'POST';
    readonly path?: string;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
    /** Called before each sending; the result is sent. */
    readonly setupRequest?: (request: Request) => Request;
  }

  export interface Result {
    readonly errors: number;
    readonly timeouts: number;
    readonly non2xx: number;
    /** Requests per second. */
    readonly requests: { readonly average: number };
    /** Seconds. */
    readonly duration: number;
  }

  export interface Run extends Promise<Result> {
    /** After each answer, with the milliseconds that it took. */
    on(
      event: 'response',
      listener: (client: unknown, status: number, bytes: number, milliseconds: number) => void,
    ): void;
    /** Before its time: the run resolves within a second. */
    stop(): void;
  }

  export default function autocannon(options: Options): Run;
}
