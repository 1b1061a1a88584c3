import { beforeAll, afterAll, describe, expect, test } from 'vitest';
import {
  openCommandUnderTest,
  type CommandLine,
  type CommandUnderTest,
} from '../command-under-test.fixture.ts';

// What every command but run says of arguments that it cannot use: one line, nothing changed. Those of run have files of
// their own (run-*-refused.test.ts).

type Row = readonly [line: CommandLine, said: string];

const NAMES = '; use 2 to 100 letters, digits, dots, dashes or underscores, beginning with a letter or digit';
const HELP = '; run the command with --help to see its arguments';
const ACCEPTED = '; run the command with --help to see what is accepted';
const SEE_ALL = '; see the names with skep list --all';

let skep: CommandUnderTest;
beforeAll(async () => {
  skep = await openCommandUnderTest({ files: { bad: 'x' } });
  await skep.output('run fake:1 --name a1');
});
afterAll(() => skep.close());

const refuses = async (line: CommandLine, said: string): Promise<void> =>
  expect(await skep.refusal(line)).toBe(`Error: ${said}\n`);

describe('servers by name, group or label', () => {
  test.each<Row>([
    [
      'stop',
      'at least one workload name must be provided; see the names with skep list, or use skep stop --all',
    ],
    [
      'rm',
      'at least one workload name must be provided; see the names with skep list --all, or use skep rm --all to remove all',
    ],
    ['rm --all a1', 'no arguments should be provided with --all; give names, or --all, not both'],
    [
      'rm --group default a1',
      'no arguments should be provided with --group; give names, or --group, not both',
    ],
    ['stop --all --group default', '--all cannot be used together with --group; keep one of them'],
    ['start --all --group default', '--all cannot be used together with --group; keep one of them'],
    ['rm --group absent', "group 'absent' does not exist; create it with skep group create absent"],
    ['start --group absent', "group 'absent' does not exist; create it with skep group create absent"],
    ['stop -l novalue', 'invalid label "novalue"; write key=value'],
    ['list --label x', 'invalid label "x"; write key=value'],
    ['start missing', `workload "missing" not found${SEE_ALL}`],
    ['restart missing', `workload "missing" not found${SEE_ALL}`],
    ['start ../x', `invalid workload name "../x"${NAMES}`],
    ['start a/b', `invalid workload name "a/b"${NAMES}`],
    ['status ../x', `invalid workload name "../x"${NAMES}`],
    ['status', `missing argument NAME${HELP}`],
    ['status a1 a1', `unexpected argument "a1"${HELP}`],
    ['status a1 --format xml', `invalid value "xml" for --format: it must be one of text, json${ACCEPTED}`],
    ['stop --timeout x a1', `invalid value "x" for --timeout: it must be a whole number${ACCEPTED}`],
    [
      'stop --timeout 3601 a1',
      `invalid value "3601" for --timeout: it must be between 0 and 3600${ACCEPTED}`,
    ],
    ['list extra', `unexpected argument "extra"${HELP}`],
    [
      'list --check-upgrades --format mcpservers',
      '--check-upgrades does not go with --format mcpservers; use it with --format text, wide or json',
    ],
  ])('%s', refuses);
});

describe('logs and exports', () => {
  test.each<Row>([
    ['logs', `missing argument NAME${HELP}`],
    ['logs ../x', `invalid workload name "../x"${NAMES}`],
    ['logs missing --proxy', `workload "missing" not found${SEE_ALL}`],
    ['logs a1 --tail x', `invalid value "x" for --tail: it must be a whole number${ACCEPTED}`],
    ['logs prune x', `unexpected argument "x"${HELP}`],
    ['export a1', `missing argument PATH${HELP}`],
    ['export missing out', `workload "missing" not found${SEE_ALL}`],
    ['export ../x out', `invalid workload name "../x"${NAMES}`],
    [
      'export a1 out --format yaml',
      `invalid value "yaml" for --format: it must be one of json, k8s, seatbelt${ACCEPTED}`,
    ],
    ['export a1 .', 'cannot write "WORK": it is a directory; name a file'],
  ])('%s', refuses);

  test.each<Row>([
    ['export a1 deep/er/out', "Successfully exported run configuration for 'a1' to 'deep/er/out'\n"],
    [
      'export a1 new/k8s.yaml --format k8s',
      "Successfully exported Kubernetes MCPServer resource for 'a1' to 'new/k8s.yaml'\n",
    ],
  ])('%s makes the directories that it needs', async (line, said) => {
    expect(await skep.output(line)).toBe(said);
  });
});

describe('groups, secrets and clients', () => {
  test.each<Row>([
    ['group rm', `missing argument NAME${HELP}`],
    ['group rm absent', "group 'absent' does not exist; create it with skep group create absent"],
    ['group create', `missing argument NAME${HELP}`],
    ['group create a a', `unexpected argument "a"${HELP}`],
    ['group list extra', `unexpected argument "extra"${HELP}`],
    ['group run absent', 'group "absent" not found in the catalogue; the catalogue has no groups'],
    ['secret set', `missing argument NAME${HELP}`],
    ['secret list extra', `unexpected argument "extra"${HELP}`],
    [
      'secret set __skep_x',
      'the secret name "__skep_x" is reserved for system use; choose one that does not begin with __skep_',
    ],
    [
      'secret delete --system x',
      '"x" is no secret of the system; leave --system out, or see the names with skep secret list --system',
    ],
    [
      'secret delete missing',
      'secrets provider not configured; choose where secrets are kept with skep secret setup, or give them as SKEP_SECRET_<NAME> with SKEP_SECRETS_PROVIDER=environment',
    ],
    [
      'secret provider nosuch',
      'invalid secrets provider type: "nosuch"; valid types: encrypted, keyring, 1password, environment, none',
    ],
    [
      'client register cursor --group absent',
      "group 'absent' does not exist; create it with skep group create absent",
    ],
    ['client status extra', `unexpected argument "extra"${HELP}`],
  ])('%s', refuses);

  test.each(['client register nope', 'client remove nope'])('%s', async (line) => {
    expect(await skep.refusal(line)).toMatch(
      /^Error: invalid client type: nope \(valid types: amp-cli, .*zed\); .*\n$/,
    );
  });
});

describe('the configuration', () => {
  test.each<Row>([
    ['config set nosuch x', 'unknown key "nosuch"; see the keys with skep config list'],
    [
      'config set-build-env A.B x',
      '"A.B" is no name of a variable of builds; write it in capitals, digits and _',
    ],
    ['config set-build-env PATH x', 'builds set "PATH" themselves; choose another variable'],
    [
      ['config', 'set-build-env', 'A', 'x\ny'],
      'the value of "A" has a line break or is too long; give one line; a login file is stored with skep config set-build-auth-file',
    ],
    ['config set-build-env A', 'give exactly one of VALUE, --from-secret and --from-env; keep one of them'],
    [
      'config set-build-env A x --from-env',
      'give exactly one of VALUE, --from-secret and --from-env; keep one of them',
    ],
    [
      'config set-build-auth-file nosuch bad',
      '"nosuch" is no login file that a build can use; use npmrc or netrc: npx:// packages are installed by npm, uvx:// and go:// ones sign in by netrc',
    ],
    ['config set-build-auth-file npmrc missing', 'login file "WORK/missing" does not exist; check the path'],
    ['config unset-build-env', 'give a NAME or --all; keep one of them'],
    ['config unset-build-env A --all', 'give a NAME or --all; keep one of them'],
    ['config set-registry', `missing argument ADDRESS${HELP}`],
    [
      'config set-registry ftp://x',
      'invalid address "ftp://x"; give a file, or an http or https address with a host',
    ],
    [
      'config set-registry http://x.example/c.json',
      'plain http is not safe for a catalogue: "http://x.example/c.json"; use https, or give --allow-private-ip',
    ],
    [
      'config set-registry missing.json',
      'the catalogue file "WORK/missing.json" cannot be read: ENOENT; check the address with skep config get-registry',
    ],
    ['config set-ca-cert missing', 'CA bundle "WORK/missing" does not exist; check the path'],
    [
      'config set-ca-cert bad',
      'CA bundle "WORK/bad" holds no certificate; name a PEM file with at least one certificate',
    ],
  ])('%j', refuses);
});

describe('builds, the runtime and the catalogue', () => {
  const PYTHON = '; leave it out; system packages are added with --runtime-add-package';
  test.each<Row>([
    [
      'build npx://fake --build-with x',
      `--build-with is for Python packages, which "npx://fake" is not${PYTHON}`,
    ],
    [
      'run npx://fake --name b1 --build-with x',
      `--build-with is for Python packages, which "npx://fake" is not${PYTHON}`,
    ],
    ['build -o x -t y npx://fake', '--tag cannot be used together with --output; keep one of them'],
    ['build -o . npx://fake', 'cannot write "WORK": it is a directory; name a file'],
    [
      'build foo://x',
      'invalid package reference "foo://x": it has no known scheme; use npx://, uvx:// or go://',
    ],
    ['runtime check --timeout x', `invalid value "x" for --timeout: it must be a whole number${ACCEPTED}`],
    [
      'runtime check --timeout 0',
      `invalid value "0" for --timeout: it must be between 1 and 3600${ACCEPTED}`,
    ],
    ['runtime check x', `unexpected argument "x"${HELP}`],
    ['registry convert', `missing argument FILE${HELP}`],
    [
      'registry info missing',
      'server "missing" not found in the catalogue; find names with skep search; an image is written like org/image:tag',
    ],
    ['search', `missing argument QUERY${HELP}`],
    ['version x', `unexpected argument "x"${HELP}`],
    ['nonsense', 'unknown command "skep nonsense"; see skep --help'],
  ])('%s', refuses);
});
