import { readFile } from 'node:fs/promises';
import type { ConnectionOptions } from 'node:tls';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { Client, types, type ClientConfig } from 'pg';
import { passwordFromFile, type PasswordFilePlace } from './password-file.ts';
import { loginOf, type Login, type PostgresRole, type PostgresSettings } from './settings.ts';
import type { LoginToken } from './rds-token.ts';

export interface PostgresPlace {
  readonly settings: PostgresSettings;
  readonly passwordFile: PasswordFilePlace;
  /** Comes before every password. */
  readonly token?: LoginToken;
  /** Shown by `pg_stat_activity`. */
  readonly applicationName: string;
}

const CONNECT_MS = 10_000;
/** What a statement or a wait for a lock may take; a lock that is held longer is answered as a conflict. */
const STATEMENT_MS = 60_000;
export const LOCK_MS = 10_000;
/** Beyond what the server lets a statement take: without an answer by then the connection was cut without a word. */
const ANSWER_MS = STATEMENT_MS + 5_000;
/** Saying goodbye needs no answer, only a moment to be sent. */
const GOODBYE_MS = 1_000;

/** A connection that ends also where the server cannot be reached any more: a stop waits for it, and the process too. */
export class EndingClient extends Client {
  override end(): Promise<void>;
  override end(ended: (error: Error) => void): void;
  override end(ended?: (error: Error) => void): Promise<void> | void {
    const cut = setTimeout(() => this.connection.stream.destroy(), GOODBYE_MS).unref();
    this.once('end', () => clearTimeout(cut));
    return ended === undefined ? super.end() : super.end(ended);
  }
}

/** `host:port/database`, for messages. */
export function placeText({ host, port, database }: PostgresSettings): string {
  return `${host}:${port}/${database}`;
}

/** What every connection of a role is made with; `store/invalid-settings` for an unreadable root certificate. */
export async function connectionConfig(place: PostgresPlace, role: PostgresRole): Promise<ClientConfig> {
  const login = loginOf(place.settings, role);
  const plain: ClientConfig = {
    host: login.host,
    port: login.port,
    database: login.database,
    user: login.user,
    // Asked for each connection: a token is good for minutes, and a changed password file needs no restart.
    password: () => passwordOf(login, place),
    ssl: false,
    application_name: place.applicationName,
    keepAlive: true,
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    // A migration may wait for another one for as long as that takes.
    ...(role === 'app' ? { query_timeout: ANSWER_MS } : {}),
    lock_timeout: LOCK_MS,
    idle_in_transaction_session_timeout: STATEMENT_MS,
    types: { getTypeParser: typeParser },
  };
  const ssl = await tlsOptions(place.settings);
  if (ssl === undefined) return plain;
  const encrypted = { ...plain, ssl };
  if (place.settings.sslMode !== 'prefer') return encrypted;
  return (await takesTls(encrypted)) ? encrypted : plain;
}

/** A connection of its own, outside of any pool. The caller ends it. */
export async function connect(place: PostgresPlace, role: PostgresRole): Promise<Client> {
  const client = new EndingClient(await connectionConfig(place, role));
  // Without a listener the loss of an idle connection would end the process.
  client.on('error', () => {});
  try {
    await client.connect();
  } catch (cause) {
    // Where we gave up and not the server, it would wait a minute for us, and the process for it.
    void client.end().catch(() => {});
    throw postgresFailure(placeText(place.settings), cause);
  }
  return client;
}

async function passwordOf(login: Login, { token, passwordFile }: PostgresPlace): Promise<string> {
  if (token !== undefined) return token(login);
  return login.password ?? (await passwordFromFile(passwordFile, login)) ?? '';
}

async function tlsOptions({
  sslMode,
  sslRootCert,
}: PostgresSettings): Promise<ConnectionOptions | undefined> {
  if (sslMode === 'disable') return undefined;
  // Encrypted against listeners; who the server is, these two modes do not prove.
  if (sslMode === 'prefer' || sslMode === 'require') return { rejectUnauthorized: false };
  const ca = sslRootCert === undefined ? undefined : await rootCertificate(sslRootCert);
  return {
    rejectUnauthorized: true,
    ...(ca === undefined ? {} : { ca }),
    // verify-ca: any certificate of a trusted authority will do, whatever name it carries.
    ...(sslMode === 'verify-ca' ? { checkServerIdentity: () => undefined } : {}),
  };
}

async function rootCertificate(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (cause) {
    throw new SkepError('store/invalid-settings', {
      message: `cannot read the root certificate "${path}"`,
      hint: 'correct database.sslRootCert',
      cause,
    });
  }
}

/** The driver has no `prefer`; its error for a server without TLS is a fixed text. */
async function takesTls(config: ClientConfig): Promise<boolean> {
  const client = new EndingClient(config);
  client.on('error', () => {});
  try {
    await client.connect();
    return true;
  } catch (error) {
    const refuses = error instanceof Error && error.message.includes('does not support SSL');
    // Any other failure is met again, and told, by who asked for a connection.
    return !refuses;
  } finally {
    await client.end();
  }
}

type Oid = Parameters<typeof types.getTypeParser>[0];

/** 64-bit integers as numbers: revisions and milliseconds stay far below 2^53. Everything else as the driver does. */
function typeParser(oid: Oid, format?: 'text' | 'binary') {
  return oid === types.builtins.INT8 ? Number : types.getTypeParser(oid, format);
}

/** Losing against others is nobody's fault: serialization_failure, deadlock_detected, lock_not_available. */
const LOST = new Set(['40001', '40P01', '55P03']);
/** Class 28: invalid_authorization_specification, invalid_password; invalid_catalog_name; insufficient_privilege. */
const REFUSED = new Set(['28000', '28P01', '3D000', '42501']);
/** admin_shutdown, crash_shutdown, cannot_connect_now, too_many_connections, idle_in_transaction_session_timeout. */
const AWAY = new Set(['57P01', '57P02', '57P03', '53300', '25P03']);

/** The driver's error in our words (PostgreSQL manual, "Error Codes"), without values of rows. `place` is for messages. */
export function postgresFailure(place: string, cause: unknown): SkepError {
  if (cause instanceof SkepError) return cause;
  const text = cause instanceof Error ? cause.message : String(cause);
  const state = stateOf(cause);
  if (state === undefined || AWAY.has(state) || state.startsWith('08')) {
    // No answer of the server: the connection, or the pool that waited for one.
    const message = `the database "${place}" does not answer: ${text}`;
    return new SkepError('store/unavailable', { message, cause });
  }
  const detail = { sqlState: state };
  if (LOST.has(state)) return new SkepError('store/conflict', { detail, cause });
  if (REFUSED.has(state)) {
    const message = `the database "${place}" refused: ${text}`;
    return new SkepError('store/refused-login', { message, detail, cause });
  }
  const message = `the database "${place}" failed: ${text}`;
  return new SkepError('store/failed', { message, detail, cause });
}

/** The five-character code of an error that the server sent; errors of Node have longer ones. */
function stateOf(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return undefined;
  return /^[0-9A-Z]{5}$/.test(error.code) && 'severity' in error ? error.code : undefined;
}
