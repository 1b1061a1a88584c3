import { writeFileSync } from 'node:fs';
import { buildHelm, renderChart } from '../e2e/fixtures/helm.ts';
import { chartFolder, EXAMPLES, manifestFile, manifestOf, valuesFile } from './deployment.ts';

/** `npm run build:manifests`: writes deploy/manifests from the charts (decision 0421), with a Helm that it builds once. */
buildHelm();
for (const example of EXAMPLES) {
  const { file, chart, release: name, namespace } = example;
  const rendered = await renderChart({
    chart: chartFolder(chart),
    name,
    namespace,
    values: [valuesFile(file)],
  });
  writeFileSync(manifestFile(file), manifestOf(example, rendered));
  console.log(manifestFile(file));
}
