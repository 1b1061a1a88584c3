import type { RemotePlan } from '@skep/core/catalog/run-plan.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isSecretName, redactUrl } from '@skep/core/log/redact.ts';
import { valuesOf } from '@skep/core/settings/define-settings.ts';
import type { Settings } from '@skep/core/settings/field.ts';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { checkHeaders, referencesOf, type HeaderForward } from '../run-config/header-forward.ts';
import { hasBearerToken, isSignedInTo, isWithin } from '../run-config/remote-auth.ts';
import { referenceTo, runConfigOf, type RunConfig } from '../run-config/run-config.ts';
import { runSettings, type RunValues } from '../settings/run-settings.ts';
import { NOWHERE_HERE } from '../settings/identity.ts';
import type { AppConfig } from '../config/app-config.ts';
import { proxyConfigOf } from './build-config.ts';
import type { NewWorkload, Surroundings, UpgradePlan } from './plan.ts';
import type { AskedRun, PlannedProxy, RunRequest } from './planned-run.ts';
import { planSignInElsewhere, signInFrom, signInOf } from './plan-remote-sign-in.ts';
import { unusedText } from './plan-sign-in.ts';
import { isPrivateHost } from './private-host.ts';
import { refuseLogin, type ResolvedRemote } from './resolve-target.ts';
import { secretsFor } from './secrets-for.ts';
import { layer, settingsOfCatalogue } from './settings-of-run.ts';

/** What flags say of a server that runs here; those that keep their meaning for one elsewhere are not among them. */
const OF_LOCAL_SERVERS: ReadonlySet<string> = new Set<keyof RunValues>([
  'runtime', 'learnFile', 'proxyMode', 'targetHost', 'targetPort', 'publish', 'network', 'isolateNetwork',
  'allowRuntimeGateway', 'env', 'envFile', 'envFileDir', 'volume', 'ignoreGlobally', 'printResolvedOverlays',
  'permissionProfile', 'sandboxUser', 'imageVerification', 'memory', 'cpus', 'pidsLimit', 'disk', 'readOnly', 'caCert',
  'runtimeImage', 'runtimeAddPackage', 'buildWith', 'rebuild',
]); // prettier-ignore

interface AskedRemote extends Pick<AskedRun, 'request' | 'config'>, Omit<PlannedProxy, 'values'> {
  readonly found: ResolvedRemote;
}

/**
 * A run of a server elsewhere: a proxy in front of its address (docs/behaviour/run.md#remote-servers). Fails with
 * `usage/*` for what only a server here could be given, `run/missing-env` for what its entry needs, and
 * `fetch/refused-address` for an address of a catalogue that is not public.
 */
export async function planRemote(asked: AskedRemote, around: Surroundings): Promise<NewWorkload> {
  const { found, inputs, signIn: ofClients, exchange, telemetry, config: app, request } = asked;
  refuseLocal(request);
  // Names are looked up by threads that everything in a process shares.
  around.inside?.handOver('the name of its server is looked up');
  const settings = settingsOf(asked, around);
  const values = valuesOf(runSettings, settings);
  const url = refuseLogin(new URL(found.url));
  const header_forward = headersFor(
    { plain: values.remoteForwardHeaders, secret: values.remoteForwardHeadersSecret },
    found.plan,
    (name) =>
      `store the value with skep secret set NAME and give --remote-forward-headers-secret ${name}=NAME`,
  );
  const isPrivate = await isPrivateHost(url);
  if (found.plan) requirePublic({ isPrivate, url: found.url, called: found.entryName }, app);
  const auth = await planSignInElsewhere({ ...asked, values, settings, url, hasHeaders: header_forward !== undefined }, around); // prettier-ignore
  const { runtime, info } = await around.connect(NOWHERE_HERE);
  const name = inputs.name ?? found.generatedName;
  const secrets = referencesOf({
    ...asked.webhooks,
    secrets: values.secret,
    ...(header_forward && { header_forward }),
  });
  const kept = values.explain ? {} : await secretsFor(secrets, around);
  return {
    is: 'new',
    name,
    runtime,
    settings,
    foreground: values.foreground,
    rename: 'choose another --name',
    host: inputs.host,
    secrets: kept,
    env: { requirements: [] },
    ...signInOf(auth, { url: found.url, caPath: inputs.caBundle, secrets: kept, mayBePrivate: { resource: isPrivate, issuer: auth.isIssuerPrivate } }), // prettier-ignore
    preparation: { source: { kind: 'image', reference: found.url }, addPackages: [] },
    wanted: {
      name,
      group: values.group,
      image: found.url,
      ...(found.entryName !== undefined && { registry_server_name: found.entryName }),
      permission_profile: {},
      isolate_network: false,
    },
    warnings: [
      ...unused(request),
      ...[ofClients, exchange, telemetry, auth].flatMap(({ warnings }) => warnings.filter(isMeant)),
      ...openHeaders(header_forward),
    ],
    configure: async ({ port, prepared, signedIn }) =>
      runConfigOf(values, {
        name,
        ...proxyConfigOf({ ...asked, values, remoteAuth: auth }, { port, merged: { env: {}, secret: [] } }),
        remote_auth_config: auth.how === 'token' ? auth.auth : signedIn,
        image: prepared.reference,
        remote_url: found.url,
        ...(isPrivate ? { remote_allow_private_ip: true } : {}),
        header_forward,
        transport: transportOf(values),
        target_host: undefined,
        permission_profile: {},
        skep_ca_bundle: inputs.caBundle,
        runtime: referenceTo(await info),
      }),
  };
}

/** Authorities are of use without clients that sign in: the server may need them. */
const isMeant = (warning: string): boolean => warning !== unusedText('skep-ca-bundle');

/**
 * What a server elsewhere would be upgraded to: the address that the entry it came from names now, spoken to as that says.
 * It keeps its headers; that another server gets to see secret ones is asked for. Fails with `run/missing-env`, `target/not-found`, `catalog/unusable-server` or `fetch/refused-address`, and with `target/invalid` for `to`.
 */
export async function planRemoteUpgrade(
  config: RunConfig & { readonly remote_url: string },
  { to, app }: { readonly to: string | undefined; readonly app: AppConfig },
  around: Surroundings,
): Promise<UpgradePlan> {
  const { name, registry_server_name: called } = config;
  if (to !== undefined) {
    throw new SkepError('target/invalid', {
      message: `${name} runs elsewhere, where its versions are chosen`,
      hint: 'leave out --to',
    });
  }
  const plan = called === undefined ? undefined : await planOf({ name, called }, app, around);
  const url = plan?.target.url ?? config.remote_url;
  const isMoved = url !== config.remote_url;
  const isPrivate = await isPrivateHost(new URL(url));
  if (isMoved) requirePublic({ isPrivate, url, called }, app);
  const next = { ...config, image: url, remote_url: url, remote_allow_private_ip: isPrivate };
  const { runtime } = await around.connect(NOWHERE_HERE);
  return {
    config,
    runtime,
    preparation: { source: { kind: 'image', reference: url }, addPackages: [] },
    wanted: { ...config, image: url },
    missing: [],
    wishes: [],
    grants: isMoved ? shownTo(new URL(url), config) : [],
    configure: async () => (plan && isMoved ? { ...next, ...saidBy(plan, config) } : next),
  };
}

/** How the server at a new address is spoken to, and with which headers. Fails with `run/missing-env`. */
function saidBy(plan: RemotePlan, { name, header_forward: headers = {} }: RunConfig): Partial<RunConfig> {
  const transport = transportOf(plan);
  const header_forward = headersFor(
    { plain: headers.add_plaintext_headers, secret: headers.add_headers_from_secret },
    plan,
    (header) =>
      `remove it with skep rm ${name}, and run it with --remote-forward-headers-secret ${header}=NAME`,
  );
  return { transport, proxy_mode: transport, ...(header_forward && { header_forward }) };
}

const transportOf = ({ transport }: { readonly transport?: string | undefined }): 'sse' | 'streamable-http' =>
  transport === 'sse' ? 'sse' : 'streamable-http';

/** What another server than the one before would get to see of what is kept for that. */
function shownTo(url: URL, config: RunConfig): readonly string[] {
  const { host, origin } = url;
  const { remote_url: before, header_forward } = config;
  if (before !== undefined && isWithin(url, before)) return [];
  // Headers are for a host; a token is for one server of it.
  if (before !== undefined && new URL(before).origin === origin)
    return hasBearerToken(config) ? [`send ${url.href} the bearer token`] : signInsAt(host, config);
  const secrets = Object.entries(header_forward?.add_headers_from_secret ?? {});
  const open = Object.keys(header_forward?.add_plaintext_headers ?? {}).filter(isSecretName);
  return [
    ...secrets.map(([header, secret]) => `send ${host} the secret "${secret}" as ${header}`),
    ...open.map((header) => `send ${host} the header ${header}`),
    ...(hasBearerToken(config) ? [`send ${host} the bearer token`] : []),
    ...signInsAt(host, config),
  ];
}

/** A sign-in is left behind; the next one is to the other server, at the issuer of before and with its client. */
function signInsAt(host: string, config: RunConfig): readonly string[] {
  const { issuer, authorize_url: authorize, client_id: client } = config.remote_auth_config ?? {};
  const at = issuer || authorize;
  if (!isSignedInTo(config) || !(at || client)) return [];
  return [`have you sign in ${at ? `at "${at}"` : `where ${host} says`}${client ? ` as the client "${client}"` : ''}, and send ${host} the token`]; // prettier-ignore
}

async function planOf(
  { name, called }: { readonly name: string; readonly called: string },
  app: AppConfig,
  around: Surroundings,
): Promise<RemotePlan> {
  const { openCatalog } = await import('../catalog/open-catalog.ts');
  const entry = await (await openCatalog({ config: app, around })).find(called, around.signal);
  const { runPlans } = await import('@skep/core/catalog/run-plan.ts');
  const plans = entry === undefined ? [] : runPlans(entry.document);
  const plan = plans.find((one) => 'urlVariables' in one && one.urlVariables.length === 0);
  if (plan !== undefined && 'urlVariables' in plan) {
    refuseLogin(new URL(plan.target.url));
    return plan;
  }
  throw new SkepError(entry === undefined ? 'target/not-found' : 'catalog/unusable-server', {
    message: `the catalogue names no address of "${called}", which ${name} came from, any more`,
    hint: `remove the workload with skep rm ${name}, and run what you want instead of it`,
  });
}

interface FoundAddress {
  readonly isPrivate: boolean;
  readonly url: string;
  readonly called: string | undefined;
}

/** A catalogue may name any address; one that is not public is its person's to choose. */
function requirePublic({ isPrivate, url, called }: FoundAddress, app: AppConfig): void {
  if (!isPrivate || app.allowPrivateRegistryIp) return;
  throw new SkepError('fetch/refused-address', {
    message: `"${called ?? ''}" of the catalogue is at ${new URL(url).host}, which is no public address`,
    hint: `if you trust it, run its address: skep run ${redactUrl(url)}`,
  });
}

function refuseLocal({ values, args }: RunRequest): void {
  if (values.transport === 'stdio') {
    throw new SkepError('usage/conflict', {
      message: '--transport stdio reaches no server elsewhere',
      hint: 'leave it out, or use streamable-http or sse',
    });
  }
  if (values.learn) {
    throw new SkepError('usage/conflict', {
      message: '--learn watches servers that run here, and this one runs elsewhere',
      hint: 'leave it out',
    });
  }
  if (args === undefined || args.length === 0) return;
  throw new SkepError('usage/unexpected-argument', {
    message: 'a server elsewhere takes no arguments',
    hint: 'leave out what follows --',
  });
}

function settingsOf({ request, found }: AskedRemote, around: Surroundings): Settings {
  const { plan, entryName, catalog } = found;
  const given = [...request.settings].filter(([name]) => !OF_LOCAL_SERVERS.has(name));
  const where = `catalogue entry "${entryName ?? ''}"`;
  return mergeSettings(runSettings, [
    new Map(given),
    layer('flag', 'the command line', plan ? {} : { remote_url: found.url }),
    layer('registry', where, {
      ...(plan && { remote_url: found.url, transport: plan.transport, proxyPort: plan.proxyPort }),
      ...signInFrom(found, request.settings),
      registry_server_name: entryName,
    }),
    settingsOfCatalogue(catalog, around),
  ]);
}

interface GivenHeaders {
  readonly plain: Readonly<Record<string, string>> | undefined;
  readonly secret: Readonly<Record<string, string>> | undefined;
}

/** What was given, and what the entry says itself. */
function headersFor(
  { plain = {}, secret = {} }: GivenHeaders,
  plan: RemotePlan | undefined,
  hintFor: (name: string) => string,
): HeaderForward | undefined {
  const requirements = plan?.headers ?? [];
  const defaults = requirements.flatMap(({ name, default: value }) =>
    value === undefined ? [] : [[name, value]],
  );
  const given = new Set(
    [...Object.keys(plain), ...Object.keys(secret)].map((name) => name.trim().toLowerCase()),
  );
  const missing = requirements.filter(
    (one) => one.required && one.default === undefined && !given.has(one.name.toLowerCase()),
  );
  const [first] = missing;
  if (first !== undefined) {
    const names = missing.map((one) => one.name).join(', ');
    const about = missing.length === 1 && first.description !== undefined ? ` (${first.description})` : '';
    throw new SkepError('run/missing-env', {
      message: `missing required header${missing.length > 1 ? 's' : ''}: ${printable(names + about)}`,
      hint: hintFor(printable(first.name)),
    });
  }
  const spare = defaults.filter(([name = '']) => !given.has(name.toLowerCase()));
  return checkHeaders({
    add_plaintext_headers: { ...Object.fromEntries(spare), ...plain } as Record<string, string>,
    add_headers_from_secret: secret,
  });
}

function unused({ settings }: RunRequest): readonly string[] {
  const flags = runSettings.flatMap((row) => ('flag' in row ? [{ name: row.name, flag: row.flag }] : []));
  const given = flags.filter(
    ({ name }) => OF_LOCAL_SERVERS.has(name) && settings.get(name)?.origin === 'flag',
  );
  if (given.length === 0) return [];
  const names = given.map(({ flag }) => `--${flag}`).join(', ');
  return [`Warning: ${names} ${given.length === 1 ? 'has' : 'have'} no effect on a server elsewhere\n`];
}

function openHeaders(headers: HeaderForward | undefined): readonly string[] {
  const names = Object.keys(headers?.add_plaintext_headers ?? {});
  return names
    .filter(isSecretName)
    .map(
      (name) =>
        `Warning: the value of ${name} is saved as it is; keep it with skep secret set NAME and --remote-forward-headers-secret ${name}=NAME\n`,
    );
}
