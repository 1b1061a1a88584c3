import { settingsOf } from '@skep/core/settings/define-settings.ts';

/** Keys of `~/.config/skep/config.yaml` (docs/behaviour/run.md#application-settings). */
export const appSettings = settingsOf({ group: 'Configuration file' }, [
  {
    name: 'registryApiUrl',
    kind: 'string',
    key: 'registry_api_url',
    brief: 'Catalogue that speaks the MCP Registry API v0.1',
    excludes: ['registryUrl', 'localRegistryPath'],
  },
  {
    name: 'registryUrl',
    kind: 'string',
    key: 'registry_url',
    brief: 'Catalogue file at an address',
    excludes: ['localRegistryPath'],
  },
  {
    name: 'localRegistryPath',
    kind: 'path',
    key: 'local_registry_path',
    brief: 'Catalogue file on this machine',
  },
  {
    name: 'allowPrivateRegistryIp',
    kind: 'bool',
    key: 'allow_private_registry_ip',
    brief: 'The catalogue may be at a private address or plain http',
    default: false,
  },
  {
    name: 'caCertificatePath',
    kind: 'path',
    key: 'ca_certificate_path',
    brief: 'Extra certificate authority (PEM) for downloads during a build',
  },
]);
