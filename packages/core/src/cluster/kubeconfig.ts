import { parse } from 'yaml';
import { SkepError } from '../errors/skep-error.ts';
import { hasLogin, parseHttpUrl } from '../fetch/http-url.ts';
import { isLoopback } from '../fetch/loopback.ts';
import { isRecord } from '../json/is-record.ts';

/** What stands in the file itself, decoded, or the file that holds it. */
interface Part {
  readonly data: string | undefined;
  readonly file: string | undefined;
}

/** What one context of a kubeconfig says. Paths start at the folder of the file. */
export interface Kubeconfig {
  readonly server: URL;
  /** Which of its contexts this is. */
  readonly context: string;
  /** The namespace that the context names. */
  readonly namespace: string | undefined;
  readonly ca: Part;
  readonly verify: boolean;
  readonly user: {
    readonly token: string | undefined;
    readonly tokenFile: string | undefined;
    readonly certificate: Part;
    readonly key: Part;
  };
}

type Members = Readonly<Record<string, unknown>>;

/** What would have to be run, asked for or passed through; without it the file means something else. */
const REFUSED_OF_USER = [
  'exec',
  'auth-provider',
  'username',
  'password',
  'as',
  'as-uid',
  'as-groups',
  'as-user-extra',
];
const REFUSED_OF_CLUSTER = ['proxy-url', 'tls-server-name'];

/**
 * Reads one context of a kubeconfig (kubeconfig v1). A login that runs a program, and what else this program does not do,
 * is refused rather than left out. Fails with `source/invalid-cluster`, whose message holds nothing of the file but names.
 */
export function readKubeconfig(text: string, label: string, wanted?: string): Kubeconfig {
  const config = yamlMap(text);
  if (config === undefined) throw invalid(label, 'is no YAML map');
  const name = wanted ?? textOf(config['current-context']);
  if (name === undefined) throw invalid(label, 'has no current-context; name one as kubernetes.context');
  const context = itemOf(config, 'context', name, label);
  const cluster = itemOf(config, 'cluster', textOf(context['cluster']) ?? '', label);
  const user = itemOf(config, 'user', textOf(context['user']) ?? '', label);
  refuse(cluster, REFUSED_OF_CLUSTER, label);
  refuse(user, REFUSED_OF_USER, label);
  const server = parseHttpUrl(textOf(cluster['server']) ?? '');
  if (server === undefined || hasLogin(server)) throw invalid(label, 'names no address of its cluster');
  if (server.protocol === 'http:' && !isLoopback(server.hostname)) {
    throw invalid(label, 'would send its token over http; only a cluster on this machine may be reached so');
  }
  const tokenFile = textOf(user['tokenFile']);
  const ca = partOf(cluster, 'certificate-authority', label);
  const verify = cluster['insecure-skip-tls-verify'] !== true;
  if (!verify && isGiven(ca)) throw invalid(label, 'has an authority and says that it is not to be checked');
  const [certificate, key] = [partOf(user, 'client-certificate', label), partOf(user, 'client-key', label)];
  if (isGiven(certificate) !== isGiven(key))
    throw invalid(label, 'has one of client-certificate and client-key');
  return {
    server,
    context: name,
    namespace: textOf(context['namespace']),
    ca,
    verify,
    user: {
      // As kubectl has it, the file counts where both are there.
      token: tokenFile === undefined ? textOf(user['token']) : undefined,
      tokenFile,
      certificate,
      key,
    },
  };
}

/** Undefined for what is no YAML map, has a key twice, or repeats an anchor more often than people do. */
function yamlMap(text: string): Members | undefined {
  try {
    const value: unknown = parse(text, { uniqueKeys: true, maxAliasCount: 100, logLevel: 'error' });
    return isRecord(value) ? value : undefined;
  } catch {
    // What the library says quotes the file, which may hold a token.
    return undefined;
  }
}

/** The `cluster` of the item of `clusters` that has the name, and so on. */
function itemOf(config: Members, key: 'context' | 'cluster' | 'user', name: string, label: string): Members {
  const items: unknown = config[`${key}s`];
  const item = Array.isArray(items)
    ? items.find((one: unknown) => isRecord(one) && one['name'] === name)
    : undefined;
  const value: unknown = isRecord(item) ? item[key] : undefined;
  if (!isRecord(value)) throw invalid(label, `has no ${key} "${name}"`);
  return value;
}

function refuse(members: Members, names: readonly string[], label: string): void {
  const found = names.find((name) => members[name] !== undefined && members[name] !== null);
  if (found !== undefined) throw invalid(label, `uses "${found}", which is not supported`);
}

function partOf(members: Members, name: string, label: string): Part {
  const data = textOf(members[`${name}-data`]);
  if (data !== undefined && !/^[A-Za-z0-9+/=\s]+$/.test(data))
    throw invalid(label, `has a ${name}-data that is no base64`);
  return {
    data: data === undefined ? undefined : Buffer.from(data, 'base64').toString('utf8'),
    file: textOf(members[name]),
  };
}

function isGiven({ data, file }: Part): boolean {
  return data !== undefined || file !== undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function invalid(label: string, about: string): SkepError {
  return new SkepError('source/invalid-cluster', { message: `the ${label} ${about}` });
}
