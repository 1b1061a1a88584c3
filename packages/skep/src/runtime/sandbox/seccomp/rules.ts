/** Processors whose system calls are known here, by Node's name. */
export type Architecture = 'x64' | 'arm64';

/** `AUDIT_ARCH_*` of linux/audit.h: which ABI a call came through. */
export const AUDIT_ARCH: Readonly<Record<Architecture, number>> = { x64: 0xc000003e, arm64: 0xc00000b7 };

/** Calls of the x32 ABI carry this bit on x86_64 and the same `AUDIT_ARCH`. */
export const X32_BIT = 0x40000000;

/** The newest call that was looked at (Linux 6.15, the same number everywhere since 424). Later ones do not exist inside. */
export const LAST_KNOWN = 467;

/** `SECCOMP_RET_*` of linux/seccomp.h, with the error number in the low half. */
const errno = (number: number): number => 0x00050000 + number;
export const ALLOW = 0x7fff0000;
export const KILL_PROCESS = 0x80000000;
export const NOT_PERMITTED = errno(1);
export const NOT_IMPLEMENTED = errno(38);
const NO_SUCH_FAMILY = errno(97);

/** About the low 32 bits of one argument: all that the kernel reads of flags, families and request codes. */
export type Condition =
  | { readonly argument: number; readonly hasAnyOf: number }
  | { readonly argument: number; readonly isOneOf: readonly number[] }
  | { readonly argument: number; readonly isNoneOf: readonly number[] };

export interface Rule {
  readonly call: string;
  /** Absent where that processor has no such call. */
  readonly x64?: number;
  readonly arm64?: number;
  /** All of them; absent: always. */
  readonly when?: readonly Condition[];
  readonly verdict: number;
}

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
const NAMESPACES = 0x7e020000;
const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;
/** Unix, IPv4, IPv6 and netlink, which tells the own interfaces. */
const FAMILIES = [1, 2, 10, 16];
/** Linux, with or without UNAME26 and short inodes; the last one only asks. */
const PERSONALITIES = [0x0, 0x8, 0x20000, 0x20008, 0xffffffff];

/** S_ISUID and S_ISGID. */
const SET_ID = 0o6000;
/** O_CREAT and O_TMPFILE: only with them a mode is given, else that argument is whatever was there. */
const MAKES_FILE = 0x00400040;

const both = (call: string, x64: number, arm64: number): Rule => ({
  call,
  x64,
  arm64,
  verdict: NOT_PERMITTED,
});
const same = (call: string, number: number): Rule => both(call, number, number);
const only64 = (call: string, x64: number): Rule => ({ call, x64, verdict: NOT_PERMITTED });

/** With a mode, by the argument that it is. */
const setsId = (rule: Rule, mode: number, flags?: number): Rule => ({
  ...rule,
  when: [
    ...(flags === undefined ? [] : [{ argument: flags, hasAnyOf: MAKES_FILE }]),
    { argument: mode, hasAnyOf: SET_ID },
  ],
});

/**
 * No file whose mode lets others of the machine run it in the name of the server's user: in a directory that it may write
 * they could find it. mkdir takes no such bits.
 */
export const SET_ID_RULES: readonly Rule[] = [
  setsId(both('openat', 257, 56), 3, 2),
  setsId(only64('open', 2), 2, 1),
  setsId(only64('creat', 85), 1),
  // Its mode lies in memory, where no filter can look.
  { ...same('openat2', 437), verdict: NOT_IMPLEMENTED },
  setsId(only64('chmod', 90), 1),
  setsId(both('fchmod', 91, 52), 1),
  setsId(both('fchmodat', 268, 53), 2),
  setsId(same('fchmodat2', 452), 2),
  setsId(only64('mknod', 133), 1),
  setsId(both('mknodat', 259, 33), 2),
];

/**
 * Memory that lies in the kernel's lists, beyond every limit of a process and where nobody outside can count it (System V
 * shared memory, semaphores, messages): only where a control group holds it (decision 0295).
 */
export const UNCOUNTED_RULES: readonly Rule[] = [
  { ...both('shmget', 29, 194), verdict: NOT_IMPLEMENTED },
  { ...both('semget', 64, 190), verdict: NOT_IMPLEMENTED },
  { ...both('msgget', 68, 186), verdict: NOT_IMPLEMENTED },
];

/**
 * What a workload may not ask of the kernel: what engines refuse an unprivileged container by default, and tracing. Kernel
 * parts that are no business of a server (keys, bpf, modules, mounts, new namespaces) are where local escapes come from.
 */
export const RULES: readonly Rule[] = [
  ...SET_ID_RULES,
  // Keys of the user who started it.
  both('add_key', 248, 217),
  both('request_key', 249, 218),
  both('keyctl', 250, 219),
  // Programs and queues inside the kernel.
  both('bpf', 321, 280),
  both('perf_event_open', 298, 241),
  both('userfaultfd', 323, 282),
  same('io_uring_setup', 425),
  same('io_uring_enter', 426),
  same('io_uring_register', 427),
  // Mounts, roots and namespaces.
  both('mount', 165, 40),
  both('umount2', 166, 39),
  both('pivot_root', 155, 41),
  both('chroot', 161, 51),
  same('open_tree', 428),
  same('move_mount', 429),
  same('fsopen', 430),
  same('fsconfig', 431),
  same('fsmount', 432),
  same('fspick', 433),
  same('mount_setattr', 442),
  same('open_tree_attr', 467),
  both('unshare', 272, 97),
  both('setns', 308, 268),
  { ...both('clone', 56, 220), when: [{ argument: 0, hasAnyOf: NAMESPACES }] },
  // Its flags lie in memory, where no filter can look; every C library falls back to clone.
  { ...same('clone3', 435), verdict: NOT_IMPLEMENTED },
  both('fanotify_init', 300, 262),
  both('open_by_handle_at', 304, 265),
  // Other processes.
  both('ptrace', 101, 117),
  both('process_vm_readv', 310, 270),
  both('process_vm_writev', 311, 271),
  same('process_madvise', 440),
  same('pidfd_getfd', 438),
  both('kcmp', 312, 272),
  both('get_mempolicy', 239, 236),
  both('set_mempolicy', 238, 237),
  same('set_mempolicy_home_node', 450),
  both('mbind', 237, 235),
  both('migrate_pages', 256, 238),
  both('move_pages', 279, 239),
  // The machine.
  both('kexec_load', 246, 104),
  both('kexec_file_load', 320, 294),
  both('init_module', 175, 105),
  both('finit_module', 313, 273),
  both('delete_module', 176, 106),
  both('reboot', 169, 142),
  both('swapon', 167, 224),
  both('swapoff', 168, 225),
  both('acct', 163, 89),
  both('quotactl', 179, 60),
  same('quotactl_fd', 443),
  both('settimeofday', 164, 170),
  both('clock_settime', 227, 112),
  both('clock_adjtime', 305, 266),
  both('sethostname', 170, 161),
  both('setdomainname', 171, 162),
  both('syslog', 103, 116),
  both('vhangup', 153, 58),
  both('lookup_dcookie', 212, 18),
  both('nfsservctl', 180, 42),
  only64('iopl', 172),
  only64('ioperm', 173),
  only64('create_module', 174),
  only64('get_kernel_syms', 177),
  only64('query_module', 178),
  only64('uselib', 134),
  only64('ustat', 136),
  only64('sysfs', 139),
  only64('_sysctl', 156),
  // Input that a terminal would take for the user's, other sockets than a server needs, other ways to run programs.
  { ...both('ioctl', 16, 29), when: [{ argument: 1, isOneOf: [TIOCSTI, TIOCLINUX] }] },
  { ...both('socket', 41, 198), when: [{ argument: 0, isNoneOf: FAMILIES }], verdict: NO_SUCH_FAMILY },
  { ...both('socketpair', 53, 199), when: [{ argument: 0, isNoneOf: FAMILIES }], verdict: NO_SUCH_FAMILY },
  { ...both('personality', 135, 92), when: [{ argument: 0, isNoneOf: PERSONALITIES }] },
];
