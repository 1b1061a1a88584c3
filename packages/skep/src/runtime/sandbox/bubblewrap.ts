import { once } from 'node:events';
import { execFile } from 'node:child_process';
import { realpathSync, statSync } from 'node:fs';
import { arch } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { text } from 'node:stream/consumers';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import type { Finding, FindRuntime, RuntimeEnvironment } from '../environment.ts';
import { confinedUser } from '../../permissions/confined-user.ts';
import { confinedOptions, startConfined, type Bubblewrap, type ConfinedProgram } from './confine.ts';
import { findControlGroups } from './control-groups.ts';
import { findProgram } from '../find-program.ts';
import { inheritedDescriptors } from './inherited-descriptors.ts';
import {
  findNetworkTools,
  makesOwnNetwork,
  NO_NAMESPACES,
  programsOf,
  type NetworkTools,
} from './own-network.ts';
import { PROOF_FILE } from './places.ts';
import { recallProof, rememberProof, subjectOf, type Proof } from './proof.ts';
import { SandboxRuntime } from './sandbox-runtime.ts';
import { compileRules, encodeFilter } from './seccomp/compile.ts';

const run = promisify(execFile);

/** A bubblewrap that works here. */
export const findSandbox: FindRuntime = async (environment) => {
  const bubblewrap = await unlessUnavailable(findBubblewrap(environment));
  return 'found' in bubblewrap ? { found: new SandboxRuntime(environment, bubblewrap.found) } : bubblewrap;
};

/** A sandbox that cannot be had is a refusal of it. */
export async function unlessUnavailable<Found>(finding: Promise<Found>): Promise<Finding<Found>> {
  try {
    return { found: await finding };
  } catch (error) {
    if (!hasCode(error, 'runtime/sandbox-unavailable')) throw error;
    return { refusals: [{ strategy: 'sandbox', why: `${error.message}; ${error.hint}` }], error };
  }
}

type BubblewrapSearch = Pick<RuntimeEnvironment, 'env' | 'platform' | 'cacheDir'>;

/** Finds bubblewrap and proves that what it makes here confines. Throws `runtime/sandbox-unavailable`. */
export async function findBubblewrap({ env, platform, cacheDir }: BubblewrapSearch): Promise<Bubblewrap> {
  const architecture = arch();
  if (platform !== 'linux') {
    throw unavailable(`the sandbox is not available on "${platform}" yet`, 'start a container engine');
  }
  if (architecture !== 'x64' && architecture !== 'arm64') {
    throw unavailable(`the sandbox is not available on "${architecture}" yet`, 'start a container engine');
  }
  const program = findProgram('bwrap', env);
  if (program === undefined) throw unavailable('bubblewrap (bwrap) is not installed', INSTALL_HINT);
  const asRoot = statSync('/proc/self').uid === 0;
  const setpriv = asRoot ? findProgram('setpriv', env) : undefined;
  if (asRoot && setpriv === undefined) {
    throw unavailable(
      'setpriv is not installed, without which a server started by root would be root',
      'install util-linux, or run skep as an ordinary user',
    );
  }
  const prlimit = findProgram('prlimit', env);
  const given = {
    program,
    prlimit: prlimit === undefined ? undefined : realpathSync(prlimit),
    groups: findControlGroups(),
    setpriv: setpriv === undefined ? undefined : realpathSync(setpriv),
    architecture,
    inherited: inheritedDescriptors(),
  } as const;
  const tools = findNetworkTools(env);
  const proof = await provedOnce(given, tools, path.join(cacheDir, PROOF_FILE));
  const network = proof.ownNetwork || typeof tools === 'string' ? tools : NO_NAMESPACES;
  return { ...given, ...release(proof.version), network };
}

type Given = Omit<Bubblewrap, keyof ReturnType<typeof release> | 'network'>;

/** A sandbox that is proved anew for each command would cost as much as starting a server in it. */
async function provedOnce(given: Given, tools: NetworkTools | string, file: string): Promise<Proof> {
  const { program, setpriv, architecture } = given;
  const programs = [program, setpriv, ...(typeof tools === 'string' ? [] : programsOf(tools))];
  const sample = confinedOptions({ ...given, ...release('0'), network: tools }, await proofProgram(given));
  const subject = subjectOf(
    programs.filter((one) => one !== undefined),
    [PROOF, ...sample, encodeFilter(compileRules(architecture))],
  );
  const known = recallProof(file, subject);
  if (known !== undefined) return known;
  const [version, ownNetwork] = await Promise.all([
    versionOf(program),
    typeof tools !== 'string' && makesOwnNetwork(tools, setpriv !== undefined),
  ]);
  const found = { ...given, ...release(version), network: tools };
  // Mounts of the machine may come and go meanwhile, which can make a first attempt fail.
  const trouble = (await prove(found)) && (await prove(found));
  if (trouble !== undefined) {
    throw unavailable(`bubblewrap at "${program}" cannot make a sandbox: ${trouble}`, USERNS_HINT);
  }
  const proof = { subject, version, ownNetwork };
  // A network that could not be made may be made the next time.
  if (ownNetwork || typeof tools === 'string') await rememberProof(file, proof);
  return proof;
}

function release(version: string): Pick<Bubblewrap, 'version' | 'locksUserns' | 'sizesTmpfs'> {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return { version, locksUserns: major > 0 || minor >= 8, sizesTmpfs: major > 0 || minor >= 7 };
}

/** Says with its exit status that it is confined as it should be: opened for writing, nothing is written yet. */
const PROOF = `
[ "$(id -u)" != 0 ] || { echo "the program inside is root" >&2; exit 1; }
while read -r key value; do
  case "$key" in
    CapEff:|CapPrm:|CapBnd:) [ -z "\${value##*[!0]*}" ] && { echo "the program inside has capabilities" >&2; exit 1; } ;;
    NoNewPrivs:) [ "$value" = 1 ] || { echo "the program inside could gain privileges" >&2; exit 1; } ;;
    Seccomp:) [ "$value" = 2 ] || { echo "system calls are not filtered" >&2; exit 1; } ;;
  esac
done </proc/self/status
for one in kernel/core_pattern kernel/modprobe kernel/hostname vm/swappiness fs/file-max; do
  [ ! -e "/proc/sys/$one" ] || ! ( : >>"/proc/sys/$one" ) 2>/dev/null ||
    { echo "/proc/sys/$one can be written inside" >&2; exit 1; }
done
`;
const PROOF_MS = 5000;

/** Runs a few lines of shell inside; answers with what is wrong. */
async function prove(found: Bubblewrap): Promise<string | undefined> {
  const { child } = startConfined(found, await proofProgram(found), { stdio: ['ignore', 'ignore', 'pipe'] });
  const late = setTimeout(() => child.kill('SIGKILL'), PROOF_MS);
  try {
    const [said, [status]] = await Promise.all([
      child.stderr ? text(child.stderr) : '',
      once(child, 'close') as Promise<[number | null]>,
    ]);
    return status === 0 ? undefined : said.trim() || 'it gave no reason';
  } catch (error) {
    return error instanceof Error ? error.message : 'it cannot be started';
  } finally {
    clearTimeout(late);
  }
}

async function proofProgram({ setpriv }: Given): Promise<ConfinedProgram> {
  const user = await confinedUser({ asRoot: setpriv !== undefined, name: 'proof', mounts: [] });
  const command = ['/bin/sh', '-c', PROOF];
  return { command, env: {}, mounts: [], user, network: 'none', endsWithParent: true };
}

async function versionOf(program: string): Promise<string> {
  const { stdout } = await run(program, ['--version']).catch((cause: unknown) => {
    throw new SkepError('runtime/sandbox-unavailable', {
      message: `bubblewrap at "${program}" cannot be started`,
      hint: INSTALL_HINT,
      cause,
    });
  });
  return /\d+(?:\.\d+)+/.exec(stdout)?.[0] ?? '0';
}

const INSTALL_HINT =
  'install it, for example with: apt-get install bubblewrap (Debian, Ubuntu) or dnf install bubblewrap (Fedora)';
const USERNS_HINT =
  'allow unprivileged user namespaces (sysctl kernel.unprivileged_userns_clone=1, or the AppArmor profile of bwrap)';

function unavailable(message: string, hint: string): SkepError {
  return new SkepError('runtime/sandbox-unavailable', { message, hint });
}
