import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';

/** How images of `npx://`, `uvx://` and `go://` are built, and which authorities are trusted. */
export const buildSettings = settingsOf({ group: 'Build and certificates' }, [
  flag('path', 'ca-cert', 'Extra certificate authority (PEM) for downloads during a build', {
    placeholder: 'file',
  }),
  flag('path', 'skep-ca-bundle', "Certificate authorities (PEM) for Skep's own requests", {
    key: 'skep_ca_bundle',
    alias: 'thv_ca_bundle',
    placeholder: 'file',
  }),
  flag('string', 'runtime-image', 'Base image for npx://, uvx:// and go:// servers', {
    key: 'runtime_config.builder_image',
    placeholder: 'image',
  }),
  flag('list', 'runtime-add-package', 'System package to install in the built image; repeatable', {
    key: 'runtime_config.additional_packages',
    placeholder: 'package',
  }),
  flag('list', 'build-with', 'Requirement to install beside a uvx:// package; repeatable', {
    key: 'runtime_config.build_with',
    placeholder: 'requirement',
  }),
  flag('bool', 'rebuild', 'Build the image of a package again, though nothing has changed', {
    default: false,
  }),
]);
