import type { Attempt } from './attempt.ts';

const reads = (name: string, file: string, more: Partial<Attempt> = {}): Attempt => ({
  name,
  by: 'node',
  code: `reads(${file})`,
  ...more,
});
const writes = (name: string, file: string, more: Partial<Attempt> = {}): Attempt => ({
  name,
  by: 'node',
  code: `const path = ${file}; fs.appendFileSync(path, ''); fs.closeSync(fs.openSync(path, 'r+')); got(path);`,
  ...more,
});
const asRoot = { open: 'root' } as const;

/** Files of the person and of the machine. */
export const FILE_ATTEMPTS: readonly Attempt[] = [
  reads('reads a private key of the person', 'f.home + "/.ssh/id_ed25519"'),
  reads('reads a file of secrets in the home directory', 'f.home + "/.env"'),
  reads('reads what the person typed', 'f.home + "/.bash_history"'),
  reads('reads what a browser keeps', 'f.home + "/.mozilla/logins.json"'),
  reads('reads what another workload keeps', 'f.machine + "/data/other/notes"'),
  reads('reads the run configuration of another workload', 'f.machine + "/state/runconfigs/other.json"'),
  reads('reads the store of secrets', 'f.machine + "/state/secrets"'),
  reads('reads the home directory through a link in a writable mount', 'f.writable + "/link"'),
  reads('climbs out of a mount with dots', 'f.shown + "/../machine/home/.env"'),
  reads('reads what an ignore file hides', 'f.shown + "/.env"'),
  reads('reads a directory that an ignore file hides', 'f.shown + "/keys/key"'),
  {
    name: 'moves away what covers a hidden file',
    by: 'sh',
    code: 'mv "$f_covered/.env" "$f_covered/moved" && grep -q TOKEN "$f_covered/moved" && got moved && mv "$f_covered/moved" "$f_covered/.env"',
  },
  {
    name: 'moves away the directory of a covered file, and reads beside it',
    by: 'sh',
    code: 'mv "$f_covered/deep" "$f_covered/moved"; grep -qr TOKEN "$f_covered/moved/" && got moved; mv "$f_covered/moved" "$f_covered/deep"',
  },
  {
    name: 'removes the ignore file of a writable mount',
    by: 'sh',
    code: 'cp "$f_covered/.skepignore" "$f_scratch/ignore" && rm "$f_covered/.skepignore" && got removed && cp "$f_scratch/ignore" "$f_covered/.skepignore"',
  },
  writes('writes a mount that is granted for reading', 'f.shown + "/plain"'),
  writes('writes the home directory', 'f.home + "/.bashrc"'),
  writes('plants a program that starts with the session', 'f.home + "/.config/autostart/x.desktop"'),
  writes('writes the outcome of its own run', 'f.machine + "/data/sandbox/own/status"'),
  writes('writes what it was installed from', 'f.program', { on: 'sandbox' }),
  {
    name: 'plants a job of the machine',
    by: 'node',
    code: 'fs.writeFileSync("/etc/skep-escape-test", ""); fs.rmSync("/etc/skep-escape-test"); got("/etc");',
    ...asRoot,
    // A container has a copy of its own.
    on: 'sandbox',
  },
  {
    name: 'plants a program that everybody runs',
    by: 'node',
    code: 'fs.writeFileSync("/usr/bin/skep-escape-test", ""); fs.rmSync("/usr/bin/skep-escape-test"); got("/usr/bin");',
    ...asRoot,
    // A container has a copy of its own.
    on: 'sandbox',
  },
  {
    name: 'reads the passwords of the machine',
    by: 'node',
    code: 'if (fs.readFileSync("/etc/shadow", "utf8") === fs.readFileSync(f.machine + "/shadow", "utf8")) got("shadow")',
    ...asRoot,
  },
  {
    name: 'makes a program that runs as its owner, in a writable mount',
    by: 'perl',
    code: 'my $p = "$f{writable}/program"; open(my $o, ">", $p) or exit; chmod(04755, $p) or exit; my @s = stat($p); got("setuid") if $s[2] & 04000; unlink($p)',
    on: 'sandbox',
  },
  {
    name: 'becomes root through a program of root in a mount',
    by: 'sh',
    code: 'test "$("$f_writable/who" -u)" = 0 && test "$(id -u)" != 0 && got root',
    open: 'ordinary',
  },
];

/** Sockets and descriptors that lead to programs of the machine. */
export const SOCKET_ATTEMPTS: readonly Attempt[] = [
  { name: 'asks the supervisor', by: 'node', code: 'asks({ path: f.machine + "/supervisor.sock" })' },
  { name: 'asks an agent that holds keys', by: 'node', code: 'asks({ path: f.machine + "/agent.sock" })' },
  { name: 'asks by an abstract socket', by: 'node', code: 'asks({ path: "\\0" + f.abstract })' },
  {
    name: 'reaches the container engine',
    by: 'node',
    code: 'const socket = net.connect({ path: f.engine }, () => { got("engine"); socket.destroy(); }).on("error", () => {})',
    ...asRoot,
  },
  { name: 'asks a service on the loopback of the machine', by: 'node', code: 'asks({ host: "127.0.0.1", port: Number(f.port) })' }, // prettier-ignore
  { name: 'asks it by its name', by: 'node', code: 'asks({ host: "localhost", port: Number(f.port) })' },
  { name: 'asks it over IPv6', by: 'node', code: 'asks({ host: "::1", port: Number(f.port) })' },
  { name: 'asks it by a mapped address', by: 'node', code: 'asks({ host: "::ffff:127.0.0.1", port: Number(f.port) })' }, // prettier-ignore
  {
    name: 'reads a descriptor that was left open',
    by: 'node',
    code: 'for (const one of fs.readdirSync("/proc/self/fd")) if (one > 2) try { if (fs.readlinkSync("/proc/self/fd/" + one).endsWith("left-open")) reads("/proc/self/fd/" + one) } catch {}',
  },
  { name: 'sees what the person has in variables', by: 'node', code: 'has(JSON.stringify(process.env))' },
];

/** Other processes. */
export const PROCESS_ATTEMPTS: readonly Attempt[] = [
  {
    name: 'finds processes of the machine',
    by: 'node',
    code: 'for (const one of fs.readdirSync("/proc")) try { has(fs.readFileSync(`/proc/${one}/cmdline`, "latin1").split("\\0").find((word) => word === "TOKEN-" + "command")) } catch {}',
  },
  {
    name: 'reads the variables of a process',
    by: 'node',
    code: 'for (const one of fs.readdirSync("/proc")) try { if (one !== "self" && one !== String(process.pid)) has(fs.readFileSync(`/proc/${one}/environ`, "latin1").split("\\0").find((word) => word.startsWith("VICTIM="))) } catch {}',
  },
  reads('reads a file that a process has open', '"/proc/" + f.victim + "/fd/" + f.victimFd'),
  reads('reads from the directory of a process', '"/proc/" + f.victim + "/cwd/.env"'),
  reads('reads through the root of a process', '"/proc/" + f.victim + "/root" + f.home + "/.env"'),
  {
    name: 'reads through the root of the first process',
    by: 'node',
    code: 'reads("/proc/1/root" + f.home + "/.env")',
    ...asRoot,
    // Where this is a container itself, that process may have another root.
    kernel: true,
  },
  {
    name: 'reads the memory of a process',
    by: 'node',
    code: 'const [from] = fs.readFileSync(`/proc/${f.victim}/maps`, "latin1").split("-"); const file = fs.openSync(`/proc/${f.victim}/mem`, "r"); if (fs.readSync(file, Buffer.alloc(4), 0, 4, BigInt("0x" + from)) === 4) got("memory")',
    kernel: true,
  },
  { name: 'signals a process', by: 'node', code: 'process.kill(Number(f.victim), 0); got("signal")' },
  {
    name: 'traces a process',
    by: 'perl',
    code: 'done($f{s_ptrace}, 0x4206, $f{victim}+0, 0, 0)',
    kernel: true,
  },
  {
    name: 'takes a descriptor out of a process',
    by: 'perl',
    code: 'my $p = syscall($f{s_pidfd_open}, $f{victim}+0, 0); exit if $p == -1; done($f{s_pidfd_getfd}, $p, $f{victimFd}+0, 0)',
    kernel: true,
  },
  {
    name: 'enters the namespace of a process',
    by: 'perl',
    code: 'open(my $n, "<", "/proc/$f{victim}/ns/net") or exit; done($f{s_setns}, fileno($n), 0x40000000)',
    ...asRoot,
  },
];

const lets = (name: string, code: string, more: Partial<Attempt> = {}): Attempt => ({ name, by: 'perl', code, ...more }); // prettier-ignore

/** The kernel itself. The last three are left to the engine's own filter in containers, and that changed over its versions. */
export const KERNEL_ATTEMPTS: readonly Attempt[] = [
  ...['kernel/core_pattern', 'kernel/hostname', 'vm/swappiness', 'net/ipv4/ip_forward'].map((name) =>
    writes(`steers the kernel by /proc/sys/${name}`, `"/proc/sys/${name}"`, asRoot),
  ),
  writes('reaches the switches of the kernel', '"/proc/sysrq-trigger"', { ...asRoot, kernel: true }),
  {
    name: 'reads the memory of the kernel',
    by: 'node',
    code: 'fs.closeSync(fs.openSync("/proc/kcore", "r")); got("kcore")',
    ...asRoot,
    kernel: true,
  },
  lets('makes a device', 'my $d = "$f{scratch}/device"; got("device") if syscall($f{s_mknodat}, -100, $d, 020666, 0x10b) != -1; unlink $d', { ...asRoot, kernel: true }), // prettier-ignore
  lets('mounts a file system', 'my ($a, $b) = ("tmpfs", "$f{scratch}"); got("mounted") if syscall($f{s_mount}, $a, $b, $a, 0, 0) != -1; syscall($f{s_umount2}, $b, 0)', { ...asRoot, kernel: true }), // prettier-ignore
  lets('mounts in the new way', 'my $t = "tmpfs"; done($f{s_fsopen}, $t, 0)', { ...asRoot, kernel: true }),
  lets('copies a tree of mounts', 'my $t = "/"; done($f{s_open_tree}, -100, $t, 1)', { ...asRoot, kernel: true }), // prettier-ignore
  lets('unmounts what hides the rest', 'my $p = "$f{scratch}"; let($f{s_umount2}, $p, 0)', asRoot),
  lets('changes its root', 'my $p = "$f{scratch}"; done($f{s_chroot}, $p)', asRoot),
  lets('makes a user namespace', 'done($f{s_unshare}, 0x10000000)', { kernel: true }),
  lets('makes a mount namespace', 'done($f{s_unshare}, 0x00020000)', { ...asRoot, kernel: true }),
  lets('makes a network namespace', 'done($f{s_unshare}, 0x40000000)', { ...asRoot, kernel: true }),
  lets('makes a process namespace', 'done($f{s_unshare}, 0x20000000)', { ...asRoot, kernel: true }),
  lets('makes a user namespace in the new way', 'my $a = pack("Q8", 0x10000000, 0, 0, 0, 17, 0, 0, 0); my $r = syscall($f{s_clone3}, $a, 64); if ($r == 0) { exec "true" } got($r) if $r > 0', { kernel: true }), // prettier-ignore
  lets('sets up io_uring', 'my $p = "\\0" x 120; done($f{s_io_uring_setup}, 1, $p)', {
    kernel: true,
    on: 'sandbox',
  }),
  lets('loads a program of bpf', 'let($f{s_bpf}, 5, 0, 0)', { ...asRoot, kernel: true }),
  lets('watches events of the kernel', 'my $a = pack("L2 x104", 1, 112); done($f{s_perf_event_open}, $a, 0, -1, -1, 0)', { ...asRoot, kernel: true }), // prettier-ignore
  lets('handles page faults itself', 'done($f{s_userfaultfd}, 0)', { ...asRoot, kernel: true }),
  lets('reads the keyring of the session', 'done($f{s_keyctl}, 0, -3, 0)', { kernel: true }),
  lets('adds a key', 'my ($t, $d) = ("user", "skep-escape"); done($f{s_add_key}, $t, $d, $d, 1, -2)', { kernel: true }), // prettier-ignore
  lets('asks for a key', 'my ($t, $d) = ("user", "skep-absent"); let($f{s_request_key}, $t, $d, 0, 0)', { kernel: true }), // prettier-ignore
  lets('opens files by their number', 'my $h = pack("L2 x8", 8, 1); let($f{s_open_by_handle_at}, -1, $h, 0)', asRoot), // prettier-ignore
  lets('loads a module', 'my $n = ""; let($f{s_finit_module}, -1, $n, 0)', { ...asRoot, kernel: true }),
  lets('loads another kernel', 'let($f{s_kexec_load}, 0, 99, 0, 0xffff0000)', { ...asRoot, kernel: true }),
  lets('names the machine', 'open(my $h, "<", "/proc/sys/kernel/hostname"); my $n = <$h>; chomp $n; done($f{s_sethostname}, $n, length $n)', asRoot), // prettier-ignore
  lets('restarts the machine', 'let($f{s_reboot}, 0, 0, 0, 0)', { ...asRoot, kernel: true }),
  lets('swaps to a file of its own', 'my $n = "/nowhere"; let($f{s_swapon}, $n, 0)', asRoot),
  lets('has the kernel write down every process', 'my $n = "/nowhere/x"; let($f{s_acct}, $n)', { ...asRoot, kernel: true }), // prettier-ignore
  lets('listens to the cable', 'done($f{s_socket}, 17, 3, 0)', asRoot),
  lets('speaks to the host of a virtual machine', 'done($f{s_socket}, 40, 1, 0)', {
    kernel: true,
    on: 'sandbox',
  }),
  lets('uses the ciphers of the kernel', 'done($f{s_socket}, 38, 5, 0)', { kernel: true, on: 'sandbox' }),
];
