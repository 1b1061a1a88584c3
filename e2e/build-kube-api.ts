import { buildKubeApi } from './fixtures/kube-api-program.ts';

// Builds the API server that tests of sources that follow a cluster start (e2e/kube-api), once per machine.
buildKubeApi();
