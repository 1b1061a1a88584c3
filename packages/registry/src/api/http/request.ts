import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Span } from '@opentelemetry/api';
import type { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Authority } from '../../access/authority.ts';
import type { RawParameters } from '../route/parameter.ts';
import type { Route } from '../route/route.ts';
import type { SignIn } from '../sign-in/sign-in.ts';

export type RequestFailure = Pick<SkepError, 'code' | 'detail'>;

export const NO_BODY = Buffer.alloc(0);

/** A request on its way through the steps, with what each of them has found out. */
export class ApiRequest {
  readonly raw: IncomingMessage;
  readonly response: ServerResponse;
  readonly id: string;
  /** Headers that steps add to the answer, names and values in turn. */
  readonly added: string[] = [];
  /** The row of the table that answers; undefined for unknown paths and refused methods. */
  row: Route | undefined = undefined;
  /** The path of the table in `{name}` notation; undefined for unknown paths, so that labels stay few. */
  pattern: string | undefined = undefined;
  /** Methods that the path answers, as in `Allow`. */
  allow = '';
  /** Parameters in the path, percent-decoded exactly once. */
  params: RawParameters = {};
  /** What told callers apart when this one was asked. */
  signIn: SignIn | undefined = undefined;
  /** Who is asking; undefined until it is known, and for requests that were refused before. */
  authority: Authority | undefined = undefined;
  body: Buffer = NO_BODY;
  /** Why the request was refused or failed; undefined while it was not. */
  failure: RequestFailure | undefined = undefined;
  /** What the handler wants the audit log to hold besides what every request has. */
  facts: Readonly<Record<string, unknown>> | undefined = undefined;
  /** Undefined where requests are not traced. */
  span: Span | undefined = undefined;
  /** Length of the body of the answer; of a HEAD, of the body that a GET would get. */
  responseBytes = 0;

  constructor(raw: IncomingMessage, response: ServerResponse, id: string) {
    this.raw = raw;
    this.response = response;
    this.id = id;
  }

  get method(): string {
    return this.raw.method ?? 'GET';
  }

  /** The request target as it was sent. */
  get url(): string {
    return this.raw.url ?? '';
  }

  get headers(): IncomingHttpHeaders {
    return this.raw.headers;
  }

  get socket(): Socket {
    return this.raw.socket;
  }
}

/** An answer that can be written at once, and again. */
export interface Prepared {
  readonly status: number;
  readonly etag: string | undefined;
  /** Names and values in turn, the request id first; without and with those that describe a body. */
  readonly headers: string[];
  readonly withBody: string[];
  /** Stored bytes as they lie in memory. */
  readonly pieces: readonly Buffer[];
  /** Bytes of all pieces. */
  readonly length: number;
}

/** What a step does: it answers, or lets the request go on to the next one. A refusal is thrown. */
export type Run = (request: ApiRequest) => Prepared | undefined | Promise<Prepared | undefined>;
