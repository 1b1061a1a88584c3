import { existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import path from 'node:path';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import type { Answer, Glance } from '../environment.ts';
import { socketCandidates, SOCKET_OVERRIDES } from './engine-sockets.ts';

/** A socket of this machine that takes longer is not waited for. */
const CONNECT_MS = 50;

/** Whether an engine listens where `findEngine` would look. Only sockets of this machine are connected to. */
export const glanceAtEngine: Glance = async ({ env, home }) => {
  const named = [...SOCKET_OVERRIDES, 'DOCKER_HOST'].map((name) => env[name]).find(Boolean);
  if (named !== undefined) {
    const file = named.replace(/^unix:\/\//, '');
    return path.isAbsolute(file) ? listens(file) : 'unknown';
  }
  const context = env['DOCKER_CONTEXT'] || currentContext(env['DOCKER_CONFIG'] || path.join(home, '.docker'));
  let answer: Answer = context === undefined || context === 'default' ? 'no' : 'unknown';
  for (const [, file] of socketCandidates({ env, home })) {
    const heard = existsSync(file) ? await listens(file) : 'no';
    if (heard === 'yes') return heard;
    if (heard === 'unknown') answer = heard;
  }
  return answer;
};

async function listens(file: string): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const socket = connect({ path: file, timeout: CONNECT_MS });
  socket
    .once('connect', () => resolve('yes'))
    .once('timeout', () => resolve('unknown'))
    .once('error', () => resolve('no'));
  try {
    return await promise;
  } finally {
    socket.destroy();
  }
}

/** What cannot be read names none here; whoever starts a server is told. */
function currentContext(directory: string): unknown {
  try {
    const config = parsedJson(readFileSync(path.join(directory, 'config.json'), 'utf8'));
    return isRecord(config) ? config['currentContext'] : undefined;
  } catch {
    return undefined;
  }
}
