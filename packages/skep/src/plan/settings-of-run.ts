import type { LocalPlan } from '@skep/core/catalog/run-plan.ts';
import { memberPlace } from '@skep/core/json/member-place.ts';
import type { FieldValue, Origin, Setting, Settings } from '@skep/core/settings/field.ts';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import { fromStored, storedRows } from '@skep/core/settings/stored.ts';
import type { AppConfig } from '../config/app-config.ts';
import { packageReference } from '../protocol/reference.ts';
import type { PortRequest } from '../runtime/free-port.ts';
import type { Source } from '../runtime/runtime.ts';
import { runSettings } from '../settings/run-settings.ts';
import type { Surroundings } from './plan.ts';
import type { AskedRun } from './planned-run.ts';
import type { Resolved } from './resolve-target.ts';
import { runtimeConfigOf } from './runtime-configs.ts';

type Machine = Pick<Surroundings, 'env' | 'places'>;

/** What one place says about settings, those left out that it says nothing about. */
export function layer(
  origin: Origin,
  place: string,
  values: Readonly<Record<string, FieldValue | undefined>>,
): Settings {
  const said = Object.entries(values).filter(
    (pair): pair is [string, FieldValue] =>
      pair[1] !== undefined && (typeof pair[1] !== 'object' || Object.keys(pair[1]).length > 0),
  );
  return new Map(said.map(([name, value]): [string, Setting] => [name, { value, origin, place }]));
}

/** Everything that decides a run of what the command line names, with where each comes from. */
export function settingsOfRun({ request, inputs, config, resolved }: AskedRun, machine: Machine): Settings {
  const { settings, args, values } = request;
  const { plan, source, catalog, entryName } = resolved;
  const image = source.kind === 'image' ? source.reference : packageReference(source);
  return mergeSettings(runSettings, [
    new Map([...settings, ...layer('flag', '--env', { env: inputs.env.flags })]),
    layer('flag', 'the command line', { cmd_args: args, ...(plan ? {} : { image }) }),
    ...inputs.env.files.toReversed().map(({ path, values: env }) => layer('file', path, { env })),
    layer('registry', `catalogue entry "${entryName ?? ''}"`, {
      ...(plan && { ...wished(plan, values.transport), image }),
      registry_server_name: entryName,
    }),
    settingsOfCatalogue(catalog, machine),
    settingsOfBuild(config, source, machine),
    ...settingsOfMachine(config, machine),
  ]);
}

/** Where the catalogue is that a server was found in. */
export function settingsOfCatalogue(
  catalog: Resolved['catalog'],
  { places }: Pick<Machine, 'places'>,
): Settings {
  const location = catalog && withoutLogin(catalog.location);
  return layer('config', places.configFile, {
    registry_api_url: catalog?.kind === 'API endpoint' ? location : undefined,
    registry_url: catalog?.kind === 'remote file' ? location : undefined,
  });
}

/** How the configuration file says to build packages of that scheme. */
export function settingsOfBuild(
  config: Pick<AppConfig, 'runtimeConfigs'>,
  source: Source,
  { places }: Pick<Machine, 'places'>,
): Settings {
  if (source.kind !== 'package') return new Map();
  const said = runtimeConfigOf(config, source);
  return layer('config', places.configFile, {
    runtimeImage: said.builder_image,
    runtimeAddPackage: said.additional_packages,
    buildWith: said.build_with,
    'runtime_config.runtime_env': said.runtime_env,
  });
}

/** What a person has set for every run. */
const TELEMETRY = [
  'otelEndpoint',
  'otelSamplingRate',
  'otelEnvVars',
  'otelInsecure',
  'otelEnablePrometheusMetricsPath',
  'otelTracingEnabled',
  'otelMetricsEnabled',
  'otelUseLegacyAttributes',
] as const;
type MachineConfig = Pick<AppConfig, 'caCertificatePath' | 'imageVerification' | 'isolation'> &
  Partial<Pick<AppConfig, (typeof TELEMETRY)[number]>>;

/** What holds for every run on this machine. */
export function settingsOfMachine(
  { caCertificatePath, imageVerification, isolation, ...others }: MachineConfig,
  { env, places }: Machine,
): readonly Settings[] {
  return [
    layer('config', places.configFile, {
      caCert: caCertificatePath,
      imageVerification,
      isolateNetwork: isolation === 'on' ? true : undefined,
      ...Object.fromEntries(TELEMETRY.map((name) => [name, others[name]])),
    }),
    layer('env', 'NODE_EXTRA_CA_CERTS', { caCert: env['NODE_EXTRA_CA_CERTS'] }),
  ];
}

/** What a catalogue says about running a server. */
function wished(
  { transport, targetPort, proxyPort, args, env, permissions }: LocalPlan,
  given: string | undefined,
): Readonly<Record<string, FieldValue | undefined>> {
  const defaults = env.flatMap((one) => (one.default === undefined ? [] : [[one.name, one.default]]));
  return {
    transport,
    targetPort,
    // What speaks stdio is reached by nobody but its proxy, for which any port will do.
    proxyPort: (given ?? transport) === 'stdio' ? undefined : proxyPort,
    cmd_args: args,
    env: Object.fromEntries(defaults) as Record<string, string>,
    permission_profile: permissions,
  };
}

/** An exported file travels; what signs in to the catalogue does not. */
function withoutLogin(address: string): string {
  if (!URL.canParse(address)) return address;
  const url = new URL(address);
  if (url.username === '' && url.password === '') return address;
  url.username = '';
  url.password = '';
  return url.href;
}

/** What an imported file says, with the line of each. */
export function settingsOfFile(file: {
  readonly path: string;
  readonly text: string;
  readonly document: unknown;
}): Settings {
  const said = new Map<string, Setting>();
  for (const row of storedRows(runSettings)) {
    const path = row.key.split('.');
    const value = path.reduce<unknown>(
      (object, name) => (object as Record<string, unknown> | undefined)?.[name],
      file.document,
    );
    if (value === undefined || value === null) continue;
    const place = `${file.path}:${memberPlace(file.text, path)?.line ?? 1}`;
    said.set(row.name, { value: fromStored(row, value) ?? '', origin: 'file', place });
  }
  return said;
}

/** How the person chooses another port than one that they have not asked for on this command line. */
const PORT_HINTS: Partial<Record<Origin, string>> = {
  registry:
    'it is the one that the catalogue names; choose another with --proxy-port, or any free one with --proxy-port 0',
  file: 'set another "port" in the file, or 0 for a free one',
};

/** The proxy's port (docs/behaviour/run.md#ports); absent or 0 for any free one. */
export function wantedPort(settings: Settings): Pick<PortRequest, 'wanted' | 'hint'> {
  const port = settings.get('proxyPort');
  if (port === undefined) return {};
  const hint = PORT_HINTS[port.origin];
  return { wanted: Number(port.value), ...(hint === undefined ? {} : { hint }) };
}
