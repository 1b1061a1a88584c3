import { defineSettings } from '@skep/core/settings/define-settings.ts';

const group = 'Build and certificates';

/** How images of `npx://`, `uvx://` and `go://` are built, and which authorities are trusted. */
export const buildSettings = defineSettings([
  {
    name: 'caCert',
    kind: 'path',
    flag: 'ca-cert',
    group,
    brief: 'Extra certificate authority (PEM) for downloads during a build',
    placeholder: 'file',
  },
  {
    name: 'skepCaBundle',
    kind: 'path',
    flag: 'skep-ca-bundle',
    key: 'skep_ca_bundle',
    alias: 'thv_ca_bundle',
    harmless: true,
    group,
    brief: "Certificate authorities (PEM) for Skep's own requests",
    placeholder: 'file',
    notYet: true,
  },
  {
    name: 'runtimeImage',
    kind: 'string',
    flag: 'runtime-image',
    key: 'runtime_config.builder_image',
    group,
    brief: 'Base image for npx://, uvx:// and go:// servers',
    placeholder: 'image',
  },
  {
    name: 'runtimeAddPackage',
    kind: 'list',
    flag: 'runtime-add-package',
    key: 'runtime_config.additional_packages',
    group,
    brief: 'System package to install in the built image; repeatable',
    placeholder: 'package',
  },
]);
