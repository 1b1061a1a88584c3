import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose';
import { syntheticServer } from './catalogue.ts';
import { type ServedRegistry, startRegistry } from './served.ts';

export const ENTRIES = 10_000;
export const CLAIM_SETS = 200;
export const CALLERS = 1_000;
/** Claim sets that one caller covers: every fifth entry is visible, somewhere else for each caller. */
const COVERED = 40;
const AUDIENCE = 'bench';
const ISSUER = 'https://issuer.bench';

/** A registry in full authorization: entries under many claim sets, callers who each cover others of them. */
export interface GuardedRegistry extends ServedRegistry {
  readonly tokens: readonly string[];
  /** Tokens that nobody has used. */
  fresh(count: number): Promise<string[]>;
  readonly publicKey: CryptoKey;
}

export interface GuardedEntry {
  readonly name: string;
  readonly claims: string;
  readonly document: string;
}

export function guardedEntries(): GuardedEntry[] {
  return Array.from({ length: ENTRIES }, (_, index) => {
    const document = syntheticServer(index);
    return {
      name: document.name,
      claims: JSON.stringify({ org: ['acme'], team: [teamOf(index)] }),
      document: JSON.stringify(document),
    };
  });
}

const teamOf = (index: number): string => `team-${index % CLAIM_SETS}`;

/** Claims of the n-th caller. */
export function callerClaims(caller: number): { org: string; team: string[] } {
  const team = Array.from({ length: COVERED }, (_, step) => teamOf(caller + step * 7 + (caller % 5)));
  return { org: 'acme', team };
}

export async function startGuarded(): Promise<GuardedRegistry> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'skep-bench-'));
  const keys = await generateKeyPair('ES256', { extractable: true });
  const jwk = { ...(await exportJWK(keys.publicKey)), kid: 'k', alg: 'ES256', use: 'sig' };
  const issuer = http.createServer((_request, response) => response.end(JSON.stringify({ keys: [jwk] })));
  issuer.listen(0, '127.0.0.1');
  await once(issuer, 'listening');
  const address = issuer.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const sign = (caller: number, salt: string): Promise<string> =>
    new SignJWT({ ...callerClaims(caller), salt })
      .setProtectedHeader({ alg: 'ES256', kid: 'k' })
      .setIssuer(ISSUER)
      .setAudience(AUDIENCE)
      .setSubject(`caller-${caller}`)
      .setExpirationTime('1h')
      .sign(keys.privateKey);
  const config = await writeConfig(folder, `http://127.0.0.1:${port}/keys`);
  const registry = await startRegistry(config);
  const many = (count: number, salt: string): Promise<string[]> =>
    Promise.all(Array.from({ length: count }, (_, caller) => sign(caller, salt)));
  return {
    ...registry,
    tokens: await many(CALLERS, ''),
    fresh: (count) => many(count, String(performance.now())),
    publicKey: keys.publicKey,
    stop: async () => {
      await registry.stop();
      issuer.closeAllConnections();
      issuer.close();
      await rm(folder, { recursive: true });
    },
  };
}

/** One source for each claim set, because entries of files have the claims of their source. */
async function writeConfig(folder: string, jwksUrl: string): Promise<string> {
  const sources = await Promise.all(
    Array.from({ length: CLAIM_SETS }, async (_, set) => {
      const servers = Array.from({ length: ENTRIES / CLAIM_SETS }, (_entry, step) =>
        syntheticServer(set + step * CLAIM_SETS),
      );
      const file = path.join(folder, `${set}.json`);
      const meta = { last_updated: '2026-01-01T00:00:00Z' };
      await writeFile(file, JSON.stringify({ version: '1.0.0', meta, data: { servers } }));
      return {
        name: `s${set}`,
        file: { path: file },
        syncPolicy: { interval: '1h' },
        claims: { org: 'acme', team: teamOf(set) },
      };
    }),
  );
  const provider = { name: 'bench', issuerUrl: ISSUER, jwksUrl, audience: AUDIENCE, allowPrivateIP: true };
  const config = path.join(folder, 'registry.yaml');
  await writeFile(
    config,
    JSON.stringify({
      sources,
      registries: [{ name: 'bench', sources: sources.map(({ name }) => name), claims: { org: 'acme' } }],
      auth: { mode: 'oauth', oauth: { providers: [provider] }, authz: {} },
      storage: { path: path.join(folder, 'registry.db') },
    }),
  );
  return config;
}
