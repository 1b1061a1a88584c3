#!/bin/sh
# skep @VERSION@ for @SYSTEM@ in one file: what follows the last line of this script is a gzipped tar of Node
# @NODE@, the program and their licences. It is unpacked once, below the user's data directory, and run from there.
# To look inside: tail -n +@PAYLOAD_LINE@ FILE | tar -tz
set -eu

fail() {
  echo "skep: $1" >&2
  exit 1
}

case ${XDG_DATA_HOME:-} in
  /*) data=$XDG_DATA_HOME ;;
  *) data=${HOME:?is not set, so there is nowhere to unpack to}/.local/share ;;
esac
base=$data/skep/single
home=$base/@DIGEST@

# Makes `home` at once or not at all. Of two that unpack at the same time, the first one's stays.
unpack() {
  system=$(uname -s)-$(uname -m)
  [ "$system" = @UNAME@ ] || fail "this file is for @UNAME@, and this is $system"
  if [ -t 2 ]; then echo "skep: unpacking to \"$home\", once" >&2; fi
  (umask 077 && mkdir -p "$base") || fail "cannot write below \"$data\"; set XDG_DATA_HOME to a directory of yours"
  checkOwner
  stage=$(mktemp -d "$base/.new-XXXXXX")
  trap 'rm -rf "$stage"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  mkdir "$stage/all"
  tail -n +@PAYLOAD_LINE@ "$0" | (umask 022 && tar -xzf - -C "$stage/all") ||
    fail "\"$0\" cannot be unpacked: it is damaged, or \"$base\" is full"
  "$stage/all/bin/node" --version >/dev/null 2>&1 ||
    fail "Node cannot run from \"$base\": it needs glibc, and a file system that programs may run from"
  mv -T "$stage/all" "$home" 2>/dev/null || [ -d "$home" ] || fail "cannot write \"$home\""
  rm -rf "$stage"
  trap - EXIT INT TERM
}

# What others could have put there would run as this user.
checkOwner() {
  for folder in "$data/skep" "$base"; do
    [ -O "$folder" ] || fail "\"$folder\" belongs to somebody else; set XDG_DATA_HOME to a directory of yours"
  done
}

if [ -d "$home" ]; then checkOwner; else unpack; fi
exec "$home/bin/node" -- "$home/skep/skep.js" "$@"
