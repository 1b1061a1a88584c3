import { existsSync, statSync } from 'node:fs';

/** System software and its loader: what a Node binary or a script with `#!/bin/sh` needs to start. No user's data. */
export function systemMounts(): string[] {
  const libraries = ['lib', 'lib32', 'lib64', 'libx32'];
  const readable = ['/usr/bin', ...libraries.map((name) => `/usr/${name}`), '/usr/share/zoneinfo'];
  const loader = [
    '/etc/ld.so.cache',
    '/etc/ld.so.conf',
    '/etc/ld.so.conf.d',
    '/etc/alternatives',
    '/etc/localtime',
  ];
  return [
    ...readOnly([...readable, ...loader, '/nix/store']),
    // On systems with a merged /usr these are links to it, and binding follows links.
    ...readOnly(['bin', ...libraries].map((name) => `/${name}`)),
  ];
}

/**
 * What name resolution and TLS read, but for what the program gets a file of its own for. Of certificates not the
 * directories above: private keys lie beside them there.
 */
export function networkMounts(made: Readonly<Record<string, string>>): string[] {
  const names = ['/etc/resolv.conf', '/etc/hosts', '/etc/nsswitch.conf'].filter((one) => !(one in made));
  return readOnly([
    ...names,
    '/etc/ssl/certs',
    '/etc/ssl/openssl.cnf',
    '/etc/pki/tls/certs',
    '/etc/pki/ca-trust/extracted',
    '/etc/ca-certificates/extracted',
    '/usr/share/ca-certificates',
    '/usr/local/share/ca-certificates',
    '/etc/gai.conf',
    '/etc/services',
  ]);
}

const readOnly = (paths: readonly string[]): string[] =>
  paths.filter((one) => existsSync(one)).flatMap((one) => bound('--ro-bind-try', one, one));

/**
 * One mount, with the directories above it made for everybody: bubblewrap makes them for its own user only, and the
 * program inside may be another one.
 */
export function bound(
  how: '--bind' | '--ro-bind' | '--ro-bind-try',
  source: string,
  target: string,
): string[] {
  const names = target.split('/').slice(1, -1);
  const above = names.flatMap((_name, at) => [
    '--perms',
    '0755',
    '--dir',
    `/${names.slice(0, at + 1).join('/')}`,
  ]);
  return [...above, how, source, target];
}

/** Files and directories of /proc that are about the machine, as engines hide them from containers. */
const HIDDEN = ['acpi', 'asound', 'fs', 'interrupts', 'kcore', 'keys', 'key-users', 'kmsg', 'kpagecount', 'kpageflags', 'latency_stats', 'sched_debug', 'scsi', 'sysrq-trigger', 'timer_list', 'timer_stats', 'vmallocinfo']; // prettier-ignore
const UNWRITABLE = ['bus', 'irq', 'sys'];

/**
 * The process table of the sandbox. The kernel asks for the user id of the machine, not for that of a namespace, when its
 * switches in /proc are written, so they are mounted read-only whoever starts the sandbox.
 */
export function procMounts(): string[] {
  const there = (name: string) => existsSync(`/proc/${name}`);
  const covers = HIDDEN.filter(there).flatMap((name) =>
    statSync(`/proc/${name}`).isDirectory()
      ? ['--tmpfs', `/proc/${name}`, '--remount-ro', `/proc/${name}`]
      : ['--ro-bind', '/dev/null', `/proc/${name}`],
  );
  const fixed = UNWRITABLE.filter(there).flatMap((name) => ['--ro-bind', `/proc/${name}`, `/proc/${name}`]);
  return ['--proc', '/proc', ...fixed, ...covers];
}
