import { parseArgs, styleText } from 'node:util';
import { betterOf, type Bench, type Row, verdict } from './row.ts';

/**
 * `npm run bench` measures each subject against a baseline in the same run and prints the ratio next to its target.
 * `--smoke` is the gate: short rounds, a bench with a miss is measured once more and the better figure of each row
 * counts, and it fails only beyond the tolerance of row.ts, because machines are shared.
 */
const { values } = parseArgs({
  options: { smoke: { type: 'boolean', default: false }, only: { type: 'string' } },
});
const seconds = values.smoke ? 1 : 4;

const BENCHES: Readonly<Record<string, () => Promise<Bench>>> = {
  start: async () => (await import('./start.ts')).startBench,
  run: async () => (await import('./run.ts')).runBench,
  registry: async () => (await import('./registry.ts')).registryBench,
  'registry-large': async () => (await import('./registry-large.ts')).registryLargeBench,
  'registry-publish': async () => (await import('./registry-publish.ts')).registryPublishBench,
  'registry-auth': async () => (await import('./registry-auth.ts')).registryAuthBench,
  'registry-sync': async () => (await import('./registry-sync.ts')).registrySyncBench,
  proxy: async () => (await import('./proxy.ts')).proxyBench,
  'proxy-load': async () => (await import('./proxy-load.ts')).proxyLoadBench,
  authorization: async () => (await import('./authorization.ts')).authorizationBench,
  supervisor: async () => (await import('./supervisor.ts')).supervisorBench,
  memory: async () => (await import('./memory.ts')).memoryBench,
  egress: async () => (await import('./egress.ts')).egressBench,
  isolation: async () => (await import('./isolation.ts')).isolationBench,
  verification: async () => (await import('./verification.ts')).verificationBench,
  attach: async () => (await import('./attach.ts')).attachBench,
};

const rows: Row[] = [];
for (const [name, load] of Object.entries(BENCHES)) {
  if (values.only !== undefined && !values.only.split(',').includes(name)) continue;
  const bench = await load();
  const first = await measure(bench);
  const again = values.smoke && first.some((row) => row.onlyTold !== 'time' && verdict(row) !== 'met');
  if (again) console.log(`  ${name} once more, because of the miss:`);
  rows.push(...(again ? betterOf(first, await measure(bench)) : first));
}

async function measure(bench: Bench): Promise<Row[]> {
  const measured: Row[] = [];
  const report = (row: Row): void => {
    measured.push(row);
    print(row);
  };
  await bench(report, { seconds });
  return measured;
}

const beyond = rows.filter((row) => verdict(row) === 'beyond tolerance');
const missed = rows.filter((row) => verdict(row) === 'missed');
console.log(`\n${rows.length - beyond.length - missed.length} of ${rows.length} targets met`);
if (beyond.length > 0 || (!values.smoke && missed.length > 0)) process.exitCode = 1;

function print(row: Row): void {
  const result = verdict(row);
  const mark =
    result === 'met' ? styleText('green', '✓') : styleText(result === 'missed' ? 'yellow' : 'red', '✗');
  const target = row.floor === undefined ? `≤ ${row.ceiling ?? '–'}` : `≥ ${row.floor}`;
  console.log(
    `${mark} ${row.name.padEnd(64)} ${row.value.toFixed(2).padStart(9)} ${row.unit.padEnd(5)} target ${target}`,
  );
}
