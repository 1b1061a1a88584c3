import { buildHelm } from './fixtures/helm.ts';

// Builds Helm, with which the charts of deploy/helm are tested and the manifests beside them written, once per machine.
buildHelm();
