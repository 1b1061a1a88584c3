import type { Field } from '@skep/core/settings/field.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  commandUnderTest,
  openCommandUnderTest,
  type CommandLine,
  type CommandUnderTest,
} from '../command-under-test.fixture.ts';
import { runSettings } from '../settings/run-settings.ts';

/** A command line, and what it is refused with: what is wrong, and after the semicolon what to do. */
type Row = readonly [line: CommandLine, message: string];

const FILES = {
  'bad.json': '{"a": 1,\n  oops}',
  'list.json': [],
  'profile.json': { read: 3 },
  'wildcard.json': { network: { outbound: { allow_host: ['*.example.com'] } } },
  'with-port.json': { network: { outbound: { allow_host: ['api.example.com:443'] } } },
  'steering.json': { network: { outbound: { allow_host: ['a\u001B[31m.com'] } } },
  'port.json': { network: { outbound: { allow_port: [70_000] } } },
  'later.json': { network: { outbound: { deny_host: ['a.com'] } } },
  'gone.json': { read: ['./nowhere'] },
  'host.json': { network: { mode: 'host' } },
  'bad.env': 'A=1\n2B=3\n',
};
/** By the supervisor, and by the command itself. */
let machines: readonly CommandUnderTest[];

beforeAll(async () => {
  machines = await Promise.all([
    openCommandUnderTest({ supervisor: 'up', files: FILES }),
    openCommandUnderTest({ supervisor: 'asked', files: FILES }),
  ]);
});
afterAll(async () => {
  await Promise.all(machines.map((machine) => machine.close()));
});

/** Whoever carries it out, the person reads the same, and nothing is saved, created or promised. */
async function isRefused(line: CommandLine, message: string): Promise<void> {
  for (const machine of machines) expect(await machine.refusal(line)).toBe(`Error: ${message}\n`);
}

describe('the command line', () => {
  test.each<Row>([
    ['run', 'missing argument SERVER; run the command with --help to see its arguments'],
    ['run fake:1 other:2', 'unexpected argument "other:2"; put arguments for the server after --'],
    ['run --isolate-netwrok fake:1', 'unknown flag "--isolate-netwrok"; did you mean "--isolate-network"?'],
    [
      'run fake:1 --nonsense',
      'unknown flag "--nonsense"; run the command with --help to see its flags; put arguments for the server after --',
    ],
    [
      'run fake:1 --name',
      'the flag "--name" needs a value; run the command with --help to see its arguments',
    ],
    [
      ['run', 'fake:1', '--name', 'a b'],
      'invalid workload name "a b"; use 2 to 100 letters, digits, dots, dashes or underscores, beginning with a letter or digit',
    ],
    [
      ['run', 'fake:1', '--name', ''],
      'invalid workload name ""; use 2 to 100 letters, digits, dots, dashes or underscores, beginning with a letter or digit',
    ],
    [
      ['run', 'fake:1', '--name', 'a\0b'],
      'invalid value "a�b" for --name: it holds a NUL character; run the command with --help to see what is accepted',
    ],
    [
      'run fake:1 --transport',
      'the flag "--transport" needs a value; run the command with --help to see its arguments',
    ],
    [['run', ''], 'missing argument SERVER; run the command with --help to see its arguments'],
    ['run -- x', 'missing argument SERVER; run the command with --help to see its arguments'],
    [
      'run fake:1 --foreground=x',
      'invalid value "x" for --foreground: it must be true or false; run the command with --help to see what is accepted',
    ],
    [
      'run fake:1 --debug=maybe',
      'invalid value "maybe" for --debug: it must be true or false; run the command with --help to see what is accepted',
    ],
  ])('%j is refused', isRefused);
});

describe('a name', () => {
  test.each<Row>([
    [
      'run fake:1 --name ../x',
      'invalid workload name "..-x"; use 2 to 100 letters, digits, dots, dashes or underscores, beginning with a letter or digit',
    ],
    [
      'run fake:1 --name a;b',
      'invalid workload name "a;b"; use 2 to 100 letters, digits, dots, dashes or underscores, beginning with a letter or digit',
    ],
    [
      'run fake:1 --name aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',
      'invalid workload name "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; use 2 to 100 letters, digits, dots, dashes or underscores, beginning with a letter or digit',
    ],
    [
      'run fake:1 --name a',
      'invalid workload name "a"; use 2 to 100 letters, digits, dots, dashes or underscores, beginning with a letter or digit',
    ],
    [
      'run fake:1 --name -a',
      'invalid workload name "-a"; use 2 to 100 letters, digits, dots, dashes or underscores, beginning with a letter or digit',
    ],
    [
      ['run', 'fake:1', '--name=-a'],
      'invalid workload name "-a"; use 2 to 100 letters, digits, dots, dashes or underscores, beginning with a letter or digit',
    ],
    [
      'run fake:1 --name a$b',
      'invalid workload name "a$b"; use 2 to 100 letters, digits, dots, dashes or underscores, beginning with a letter or digit',
    ],
    [
      'run fake:1 --name ..',
      'invalid workload name ".."; use 2 to 100 letters, digits, dots, dashes or underscores, beginning with a letter or digit',
    ],
    [
      'run fake:1 --name .a',
      'invalid workload name ".a"; use 2 to 100 letters, digits, dots, dashes or underscores, beginning with a letter or digit',
    ],
  ])('%j is refused', isRefused);
});

describe('a group or label', () => {
  test.each<Row>([
    [
      ['run', 'fake:1', '--group', ''],
      'invalid group name in --group: ""; use lower-case letters, digits, _ and -, with single spaces between words',
    ],
    [
      'run fake:1 --group Upper',
      'invalid group name in --group: "Upper"; use lower-case letters, digits, _ and -, with single spaces between words',
    ],
    [
      ['run', 'fake:1', '--group', ' a'],
      'invalid group name in --group: " a"; use lower-case letters, digits, _ and -, with single spaces between words',
    ],
    [
      ['run', 'fake:1', '--group', 'a  b'],
      'invalid group name in --group: "a b"; use lower-case letters, digits, _ and -, with single spaces between words',
    ],
    [
      'run fake:1 --group a/b',
      'invalid group name in --group: "a/b"; use lower-case letters, digits, _ and -, with single spaces between words',
    ],
    ['run fake:1 --group team', "group 'team' does not exist; create it with skep group create team"],
    [
      'run fake:1 -l novalue',
      'invalid value "novalue" for -l: it must have the form KEY=VALUE; run the command with --help to see what is accepted',
    ],
    [
      'run fake:1 -l =v',
      'invalid value "=v" for -l: the key before = is empty; run the command with --help to see what is accepted',
    ],
    [
      'run fake:1 -l bad!key=v',
      'invalid label "bad!key=v"; keys and values have up to 63 letters, digits, dots, dashes and underscores; skep. is reserved',
    ],
    [
      'run fake:1 -l skep.name=v',
      'invalid label "skep.name=v"; keys and values have up to 63 letters, digits, dots, dashes and underscores; skep. is reserved',
    ],
    [
      'run fake:1 -l k=vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv',
      'invalid label "k=vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"; keys and values have up to 63 letters, digits, dots, dashes and underscores; skep. is reserved',
    ],
  ])('%j is refused', isRefused);
});

describe('transport and ports', () => {
  test.each<Row>([
    [
      'run --from-config f.json --name x --transport stdio',
      '--from-config cannot be used with other configuration flags: --name, --transport; edit the file instead',
    ],
    [
      'run fake:1 --transport http',
      'invalid value "http" for --transport: it must be one of stdio, streamable-http, sse; run the command with --help to see what is accepted',
    ],
    [
      'run fake:1 --transport sse --image-verification disabled',
      'which port does the server listen on? The image declares no port; name it with --target-port',
    ],
    [
      'run fake:1 --transport streamable-http --image-verification disabled',
      'which port does the server listen on? The image declares no port; name it with --target-port',
    ],
    [
      'run fake:1 --proxy-mode x',
      'invalid value "x" for --proxy-mode: it must be one of streamable-http, sse; run the command with --help to see what is accepted',
    ],
    ['run fake:1 --endpoint-prefix x', 'invalid endpoint prefix: "x"; give a path that begins with "/"'],
    [
      'run fake:1 --endpoint-prefix /a/../b',
      'invalid endpoint prefix: "/a/../b"; give a path that begins with "/"',
    ],
    [
      'run fake:1 --proxy-port x',
      'invalid value "x" for --proxy-port: it must be a whole number; run the command with --help to see what is accepted',
    ],
    [
      'run fake:1 --proxy-port -1',
      'invalid value "-1" for --proxy-port: it must be between 0 and 65535; run the command with --help to see what is accepted',
    ],
    [
      'run fake:1 --proxy-port 65536',
      'invalid value "65536" for --proxy-port: it must be between 0 and 65535; run the command with --help to see what is accepted',
    ],
    [
      'run fake:1 --proxy-port 1.5',
      'invalid value "1.5" for --proxy-port: it must be a whole number; run the command with --help to see what is accepted',
    ],
    [
      'run fake:1 --proxy-port=',
      'invalid value "" for --proxy-port: it must be a whole number; run the command with --help to see what is accepted',
    ],
    [
      'run fake:1 --host fe80::1%eth0',
      'invalid host: "fe80::1%eth0"; give an IP address, or a name that has one of IPv4',
    ],
    ['run fake:1 --host [::1', 'invalid host: "[::1"; give an IP address, or a name that has one of IPv4'],
    [
      'run fake:1 --host [::1]:80',
      'invalid host: "[::1]:80"; give an IP address, or a name that has one of IPv4',
    ],
    [['run', 'fake:1', '--host', ''], 'invalid host: ""; give an IP address, or a name that has one of IPv4'],
    [
      'run fake:1 --host ::1 -p 80:80',
      'ports cannot be published at "::1"; give an IPv4 address as --host, or publish none',
    ],
    ['run fake:1 --target-host a_b/c', 'invalid target host: "a_b/c"; give a host name or an IPv4 address'],
    [['run', 'fake:1', '--target-host', ''], 'invalid target host: ""; give a host name or an IPv4 address'],
    ['run fake:1 --target-host ::1', 'invalid target host: "::1"; give a host name or an IPv4 address'],
    [
      'run fake:1 --target-port 0',
      'invalid value "0" for --target-port: it must be between 1 and 65535; run the command with --help to see what is accepted',
    ],
    [
      'run fake:1 --target-port 65536',
      'invalid value "65536" for --target-port: it must be between 1 and 65535; run the command with --help to see what is accepted',
    ],
    [
      'run fake:1 --target-port x',
      'invalid value "x" for --target-port: it must be a whole number; run the command with --help to see what is accepted',
    ],
    [
      'run fake:1 -p a:b',
      'invalid port specification: "a:b"; write hostPort:containerPort, or containerPort alone, with ports from 1 to 65535',
    ],
    [
      'run fake:1 -p 1:2:3',
      'invalid port specification: "1:2:3"; write hostPort:containerPort, or containerPort alone, with ports from 1 to 65535',
    ],
    [
      'run fake:1 -p 0',
      'invalid port specification: "0"; write hostPort:containerPort, or containerPort alone, with ports from 1 to 65535',
    ],
    [
      'run fake:1 -p 70000:1',
      'invalid port specification: "70000:1"; write hostPort:containerPort, or containerPort alone, with ports from 1 to 65535',
    ],
    [
      'run fake:1 -p 1:0',
      'invalid port specification: "1:0"; write hostPort:containerPort, or containerPort alone, with ports from 1 to 65535',
    ],
    [
      ['run', 'fake:1', '-p', ''],
      'invalid port specification: ""; write hostPort:containerPort, or containerPort alone, with ports from 1 to 65535',
    ],
    [
      'run fake:1 --network none --transport streamable-http --target-port 80',
      'a server without network cannot be reached over HTTP; add --isolate-network, use --permission-profile network, or --transport stdio if the server speaks it',
    ],
  ])('%j is refused', isRefused);
});

describe('isolation', () => {
  test.each<Row>([
    [
      'run fake:1 --isolate-network --network host',
      'network isolation cannot be enforced on the network "host"; leave out --isolate-network, or leave out --network',
    ],
    [
      'run fake:1 --isolate-network --network mine',
      'network isolation cannot be enforced on the network "mine"; leave out --isolate-network, or leave out --network',
    ],
    [
      'run fake:1 --isolate-network --permission-profile ./host.json',
      'network isolation cannot be enforced on the network "host"; leave out --isolate-network, or use another permission profile',
    ],
    [
      'run fake:1 --isolate-network=maybe',
      'invalid value "maybe" for --isolate-network: it must be true or false; run the command with --help to see what is accepted',
    ],
  ])('%j is refused', isRefused);

  test('that the configuration asks for is never left out silently', async () => {
    const skep = await commandUnderTest();
    await skep.output('config set isolation on');
    expect(await skep.refusal('run fake:1 --network host')).toBe(
      'Error: network isolation cannot be enforced on the network "host"; to run it without isolation, add --isolate-network=false; to isolate it, leave out --network\n',
    );
    await skep.output('run fake:1 --network host --isolate-network=false');
  });
});

describe('variables', () => {
  test.each<Row>([
    [
      'run fake:1 -e =x',
      'empty environment variable key in --env; write KEY=VALUE; a key has letters, digits and underscores',
    ],
    [
      ['run', 'fake:1', '-e', ''],
      'empty environment variable key in --env; write KEY=VALUE; a key has letters, digits and underscores',
    ],
    [
      'run fake:1 -e 1BAD=x',
      'invalid environment variable key "1BAD" in --env; write KEY=VALUE; a key has letters, digits and underscores',
    ],
    [
      'run fake:1 -e A-B=x',
      'invalid environment variable key "A-B" in --env; write KEY=VALUE; a key has letters, digits and underscores',
    ],
    [
      'run fake:1 -e UNSET',
      'the environment variable UNSET is not set here, so -e UNSET has no value to take; set UNSET first, or write -e UNSET=VALUE',
    ],
    [
      ['run', 'fake:1', '-e', 'A=\0'],
      'invalid value "A=�" for -e: it holds a NUL character; run the command with --help to see what is accepted',
    ],
    ['run fake:1 --env-file missing.env', 'env file "WORK/missing.env" does not exist; check the path'],
    [
      'run fake:1 --env-file .',
      'env file "WORK" is not a regular file; name a file, not a directory or device',
    ],
  ])('%j is refused', isRefused);
});

describe('mounts and permissions', () => {
  test.each<Row>([
    [
      'run fake:1 -v nothing',
      'invalid volume format: "nothing" (the container path is missing); write host-path:container-path, with :ro at the end for read-only',
    ],
    [
      'run fake:1 -v missing:/x',
      'volume source path does not exist: "WORK/missing"; create it first, or correct the path',
    ],
    [
      'run fake:1 -v .:x',
      'invalid volume format: ".:x" (the container path must begin with /); write host-path:container-path, with :ro at the end for read-only',
    ],
    [
      'run fake:1 -v .:/x:rw',
      'invalid volume format: ".:/x:rw" (too many colons); write host-path:container-path, with :ro at the end for read-only',
    ],
    [
      'run fake:1 -v s3://data:/data',
      'invalid volume format: "s3://data:/data" (nothing of s3:// can be mounted); mount host-path:container-path; or write volume://NAME:/path, with :ro at the end of --volume for read-only',
    ],
    [
      'run fake:1 -v volume://../data:/data',
      'invalid volume format: "volume://../data:/data" (a volume has 1 to 64 letters, digits, ".", "_" and "-", the first a letter or digit); write volume://NAME:/path, with :ro at the end of --volume for read-only',
    ],
    [
      'run fake:1 -v volume://data',
      'invalid volume format: "volume://data" (the container path is missing); write volume://NAME:/path, with :ro at the end of --volume for read-only',
    ],
    [
      'run fake:1 -v volume://data:/x:rw',
      'invalid volume format: "volume://data:/x:rw" (too many colons); write volume://NAME:/path, with :ro at the end of --volume for read-only',
    ],
    [
      'run fake:1 -v volume://data:x',
      'invalid volume format: "volume://data:x" (the container path must begin with /, and be more than that); write volume://NAME:/path, with :ro at the end of --volume for read-only',
    ],
    [
      'run fake:1 -v volume://data:/x -v volume://other:/x:ro',
      'two mounts for "/x": "volume://data" and "volume://other"; give each container path once, in --volume or in the permission profile',
    ],
    [
      'run fake:1 -v :/x',
      'invalid volume format: ":/x" (a side is empty); write host-path:container-path, with :ro at the end for read-only',
    ],
    [
      ['run', 'fake:1', '-v', ''],
      'invalid volume format: "" (the container path is missing); write host-path:container-path, with :ro at the end for read-only',
    ],
    [
      'run fake:1 -v .:/x:ro -v bad.env:/x',
      'two mounts for "/x": "WORK" and "WORK/bad.env"; give each container path once, in --volume or in the permission profile',
    ],
    [
      'run fake:1 --permission-profile nosuch',
      'permission profile "WORK/nosuch" does not exist; check the path',
    ],
    [
      'run fake:1 --permission-profile ./missing.json',
      'permission profile "WORK/missing.json" does not exist; check the path',
    ],
    [
      'run fake:1 --permission-profile ./bad.json',
      'permission profile "WORK/bad.json" is not valid JSON at line 2, column 3; correct the file at the named place',
    ],
    [
      'run fake:1 --permission-profile ./list.json',
      '"WORK/list.json" is not a permission profile: must be an object; use none, network, or a JSON file with read, write and network',
    ],
    [
      'run fake:1 --permission-profile ./profile.json',
      '"WORK/profile.json" is not a permission profile: "read": must be a list; use none, network, or a JSON file with read, write and network',
    ],
    [
      'run fake:1 --memory 1m',
      '"1m" is no amount of memory; give bytes, or a number with k, m or g such as 512m, at least 6m, or none',
    ],
    [
      'run fake:1 --cpus 0.001',
      '"0.001" is no number of processors; give a number such as 0.5 or 2, at least 0.01, or none',
    ],
    [
      'run fake:1 --pids-limit 3',
      '"3" is no number of processes; give a whole number of at least 16, or none',
    ],
    [
      'run fake:1 --disk x',
      '"x" is no amount of disk; give bytes, or a number with k, m or g such as 512m, at least 1m, or none',
    ],
    [
      'run fake:1 --permission-profile ./wildcard.json',
      '"WORK/wildcard.json" is not a permission profile: "network.outbound.allow_host.0": "*.example.com" is a wildcard; write ".example.com" for example.com and all below it; use none, network, or a JSON file with read, write and network',
    ],
    [
      'run fake:1 --permission-profile ./with-port.json',
      '"WORK/with-port.json" is not a permission profile: "network.outbound.allow_host.0": "api.example.com:443" has a port; write "api.example.com" here, and 443 in "allow_port"; use none, network, or a JSON file with read, write and network',
    ],
    [
      'run fake:1 --permission-profile ./steering.json',
      '"WORK/steering.json" is not a permission profile: "network.outbound.allow_host.0": "a�[31m.com" is not a host name; use none, network, or a JSON file with read, write and network',
    ],
    [
      'run fake:1 --permission-profile ./port.json',
      '"WORK/port.json" is not a permission profile: "network.outbound.allow_port.0": must be a whole number from 1 to 65535; use none, network, or a JSON file with read, write and network',
    ],
    [
      'run fake:1 --permission-profile ./later.json',
      '"WORK/later.json" is not a permission profile: "network.outbound": has an unknown key: "deny_host"; use none, network, or a JSON file with read, write and network',
    ],
    [
      'run fake:1 --permission-profile ./gone.json',
      'volume source path does not exist: "WORK/nowhere"; create it first, or correct the path',
    ],
    ['run fake:1 --sandbox-user x', '"x" is no user for the sandbox; give root, UID or UID:GID'],
    ['run fake:1 --sandbox-user -1', '"-1" is no user for the sandbox; give root, UID or UID:GID'],
    ['run fake:1 --sandbox-user 1:x', '"1:x" is no user for the sandbox; give root, UID or UID:GID'],
  ])('%j is refused', isRefused);
});

describe('how an image or package is made', () => {
  test.each<Row>([
    [
      'run fake:1 --image-verification x',
      'invalid value "x" for --image-verification: it must be one of warn, enabled, disabled; run the command with --help to see what is accepted',
    ],
    [
      'run fake:1 --image-verification enabled',
      'provenance server information not set: no catalogue says who signs the image "fake:1"; use an image whose origin its catalogue entry states, or give --image-verification warn',
    ],
    ['run fake:1 --ca-cert missing.pem', 'CA bundle "WORK/missing.pem" does not exist; check the path'],
    [
      'run fake:1 --ca-cert bad.env',
      'CA bundle "WORK/bad.env" holds no certificate; name a PEM file with at least one certificate',
    ],
    [
      'run npx://fake --ca-cert .',
      'CA bundle "WORK" is not a regular file; name a file, not a directory or device',
    ],
    [
      ['run', 'fake:1', '--runtime-image', 'a b'],
      'invalid base image "a b"; give --runtime-image an image reference such as node:24-alpine',
    ],
    [
      ['run', 'fake:1', '--runtime-add-package', 'a;b'],
      'invalid system package "a;b"; give --runtime-add-package one package name each time',
    ],
    [
      'run fake:1 --runtime-add-package -x',
      'invalid system package "-x"; give --runtime-add-package one package name each time',
    ],
  ])('%j is refused', isRefused);
});

describe('flags that need each other', () => {
  test.each<Row>([['run fake:1 --trust-config', '--trust-config needs --from-config; add --from-config']])(
    '%j is refused',
    isRefused,
  );
});

describe('what the rows above leave out', () => {
  test.each<Row>([
    [
      'run fake:1 --env-file bad.env',
      'invalid environment variable key "2B" in bad.env:2; write KEY=VALUE; a key has letters, digits and underscores',
    ],
    [
      ['run', 'fake:1', '--runtime-add-package', 'p'.repeat(129)],
      `invalid system package "${'p'.repeat(129)}"; give --runtime-add-package one package name each time`,
    ],
    [
      ['run', 'fake:1', '-v', '.:/x$(id)'],
      'invalid volume format: ".:/x$(id)" (it contains one of $ & ; | ` or NUL); write host-path:container-path, with :ro at the end for read-only',
    ],
    [
      'run fake:1 -v bad.env/x:/x',
      'volume source path does not exist: "WORK/bad.env/x"; create it first, or correct the path',
    ],
  ])('%j is refused', isRefused);

  test('a file of variables without an end is not read to it', async () => {
    const skep = await commandUnderTest({ files: { large: ' '.repeat(3 * 1024 * 1024) } });
    expect(await skep.refusal('run fake:1 --env-file large')).toMatch(
      /^Error: env file "WORK\/large" is larger than .*; .*\n$/,
    );
  });

  test('a value of a variable is refused with the name of the variable', async () => {
    const env = { SKEP_CHECK_TIMEOUT: 'soon' };
    for (const machine of machines) {
      expect(await machine.refusal('run fake:1', { env })).toMatch(
        /^Error: .*"soon".*SKEP_CHECK_TIMEOUT.*; .*\n$/,
      );
    }
  });

  test('a directory with more to hide than can be hidden is not mounted', async () => {
    const many = Object.fromEntries(Array.from({ length: 1001 }, (_one, at) => [`${at}.pem`, '']));
    const skep = await commandUnderTest({ files: { ...many, '../.config/skep/skepignore': '*.pem\n' } });
    expect(await skep.refusal('run fake:1 -v .:/x:ro')).toMatch(
      /^Error: more than 1000 .*; hide the dir.*\n$/,
    );
  });

  test('a configuration file that cannot be read is named, with the line, before anything is made', async () => {
    const skep = await commandUnderTest();
    await skep.configure('registry_url: [\n');
    expect(await skep.refusal('run fake:1')).toMatch(/^Error: .*\/config\.yaml:2:1: .*; .+\n$/);
  });
});

/** A flag with a value that it would take, if it were there yet. */
function given(row: Field): readonly string[] {
  const flag = `--${row.flag ?? ''}`;
  const later = row.kind === 'choice' ? row.notYetValues?.[0] : undefined;
  if (later !== undefined) return [flag, later];
  const values: Partial<Record<Field['kind'], string>> = {
    int: '8080',
    float: '0.5',
    duration: '31s',
    pairs: 'a=b',
    path: 'list.json',
    'json-file': 'list.json',
  };
  return row.kind === 'bool' ? [flag] : [flag, values[row.kind] ?? 'value'];
}

const rows: readonly Field[] = runSettings;
/** What is on by itself changes nothing when it is said, nor is anything there that could be turned off. */
const holdsAnyway = rows.filter((row) => row.notYet === true && row.default === true);
const promised = rows.filter(
  (row) =>
    !holdsAnyway.includes(row) &&
    row.flag !== undefined &&
    (row.notYet === true || (row.kind === 'choice' && row.notYetValues)),
);

test.each(promised.map((row) => [row.flag, row] as const))(
  '--%s, which a later version has, is refused and never silently nothing',
  async (flag, row) => {
    for (const machine of machines) {
      const said = await machine.refusal(['run', 'fake:1', ...given(row)]);
      expect(said).toMatch(/^Error: .*is not available yet.*; .+\n$/);
      expect(said).toContain(`--${flag}`);
    }
  },
);

test('a flag of a later version that says what happens anyway is taken', async () => {
  const skep = await commandUnderTest();
  const flags = holdsAnyway.flatMap(({ flag = '' }) => [`--${flag}`, `--${flag}=false`]);
  await skep.output(['run', 'fake:1', '--enable-audit=false', ...flags]);
});
