#!/usr/bin/env bash
# Ends what up.sh DIR started (no process but those of its own pid files) and removes DIR.
set -u
dir=${1:?usage: down.sh DIR}
case "$dir" in /*) ;; *) dir=$PWD/$dir ;; esac
[ -f "$dir/ceph.conf" ] || { echo "down.sh: $dir was not made by up.sh" >&2; exit 2; }
# The OSD before the monitor, for which it would wait.
for name in client.rgw.a osd.0 mon.a; do
  file=$dir/run/$name.pid
  [ -f "$file" ] || continue
  pid=$(cat "$file")
  grep -qaE 'radosgw|ceph-(osd|mon)' "/proc/$pid/cmdline" 2> /dev/null || continue
  kill "$pid"
  for _ in $(seq 20); do kill -0 "$pid" 2> /dev/null || break; sleep .1; done
  kill -9 "$pid" 2> /dev/null
done
rm -rf "$dir"
