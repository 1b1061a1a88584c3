import { settingsOf } from '@skep/core/settings/define-settings.ts';

/** How images of `npx://`, `uvx://` and `go://` are built, and which authorities are trusted. */
export const buildSettings = settingsOf('Build and certificates', [
  {
    kind: 'path',
    flag: 'ca-cert',
    brief: 'Extra certificate authority (PEM) for downloads during a build',
    placeholder: 'file',
  },
  {
    kind: 'path',
    flag: 'skep-ca-bundle',
    key: 'skep_ca_bundle',
    alias: 'thv_ca_bundle',
    harmless: true,
    brief: "Certificate authorities (PEM) for Skep's own requests",
    placeholder: 'file',
    notYet: true,
  },
  {
    kind: 'string',
    flag: 'runtime-image',
    key: 'runtime_config.builder_image',
    brief: 'Base image for npx://, uvx:// and go:// servers',
    placeholder: 'image',
  },
  {
    kind: 'list',
    flag: 'runtime-add-package',
    key: 'runtime_config.additional_packages',
    brief: 'System package to install in the built image; repeatable',
    placeholder: 'package',
  },
]);
