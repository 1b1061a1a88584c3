/**
 * The program that starts the supervisor and, when it was killed or crashed, starts it again: a POSIX shell that waits,
 * about one megabyte. It ends with a supervisor that ends by itself (nothing to host, retired, another one is there)
 * or by a signal that asks for it (SIGHUP, SIGINT, SIGTERM), with one that told its starter why it cannot come up, and after seven quick deaths in a row, between which it waits
 * longer each time. The first line is what `ps` shows.
 */
export const WATCHER = `# skep watcher: starts the supervisor again when it was killed
n=0
while t=$(date +%s); SKEP_WATCHER=$$ "$@"; c=$?; [ "$c" != 0 ]; do
  [ $(($(date +%s) - t)) -ge 60 ] && n=1
  case $n.$c in *.129|*.130|*.143) exit 0;; 0.1|0.126|0.127) exit 1;; esac
  echo "skep watcher: the supervisor ended with status $c" >&2
  [ "$n" -ge 7 ] && exit 1
  sleep $((n > 1 ? n * n : 0))
  n=$((n + 1))
done`;
