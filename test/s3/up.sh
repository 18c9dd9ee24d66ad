#!/usr/bin/env bash
# A real S3 server for tests: Ceph's radosgw over one monitor and one OSD in memory, on loopback, as root, without systemd.
# Needs Debian's radosgw, ceph-osd, ceph-mon and ceph-common. Up in about 13 s, 120 MB of memory.
#
#   test/s3/up.sh DIR [PORT=7480]    then: export TRIALSCAN_S3=http://127.0.0.1:PORT
#   test/s3/down.sh DIR
#
# Path style, region us-east-1, key AKTEST, secret SKTEST; another user's: AKOTHER, SKOTHER. Options of the gateway, one a line,
# are taken from RGW_OPTIONS ("rgw_max_concurrent_requests = 4" has it say SlowDown).
set -euo pipefail
dir=${1:?usage: up.sh DIR [PORT]}
port=${2:-7480}
case "$dir" in /*) ;; *) dir=$PWD/$dir ;; esac
[ -e "$dir" ] && { echo "up.sh: $dir exists already" >&2; exit 2; }
mkdir -p "$dir"/{mon,osd,rgw,log,run}
new_uuid() { cat /proc/sys/kernel/random/uuid; }
# Two more ports for the monitor, so that two servers can run side by side.
mon_port=$((port + 32520))

cat > "$dir/ceph.conf" <<END
[global]
fsid = $(new_uuid)
mon_host = [v2:127.0.0.1:$mon_port,v1:127.0.0.1:$((mon_port + 1))]
mon_initial_members = a
public_network = 127.0.0.0/8
cluster_network = 127.0.0.0/8
keyring = $dir/keyring
run_dir = $dir/run
log_file = $dir/log/\$name.log
admin_socket = $dir/run/\$name.asok
pid_file = $dir/run/\$name.pid
crash_dir = $dir/run
mon_cluster_log_file = $dir/log/cluster.log
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 4
osd_pool_default_pgp_num = 4
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_allow_pool_size_one = true
mon_warn_on_pool_no_redundancy = false
mon_max_pg_per_osd = 1000
ms_bind_ipv6 = false
[mon]
mon_data = $dir/mon
[osd]
osd_data = $dir/osd
osd_objectstore = memstore
memstore_device_bytes = 4G
[client.rgw.a]
rgw_data = $dir/rgw
rgw_frontends = beast endpoint=127.0.0.1:$port tcp_nodelay=1
rgw_run_sync_thread = false
rgw_override_bucket_index_max_shards = 1
${RGW_OPTIONS:-}
END
export CEPH_CONF=$dir/ceph.conf

# Without keys for all of them the OSD and the gateway never come up.
keys=$dir/keyring
key() { ceph-authtool "$keys" --gen-key -n "$@" > /dev/null; }
ceph-authtool --create-keyring "$keys" --gen-key -n mon. --cap mon 'allow *' > /dev/null
key client.admin --cap mon 'allow *' --cap osd 'allow *'
key osd.0 --cap mon 'allow profile osd' --cap osd 'allow *'
key client.rgw.a --cap mon 'allow rw' --cap osd 'allow rwx'

fsid=$(sed -n 's/^fsid = //p' "$dir/ceph.conf")
monmaptool --create --clobber --addv a "[v2:127.0.0.1:$mon_port,v1:127.0.0.1:$((mon_port + 1))]" \
  --fsid "$fsid" "$dir/monmap" > /dev/null
ceph-mon --mkfs -i a --monmap "$dir/monmap" --keyring "$keys"
ceph-mon -i a
osd=$(new_uuid)
ceph osd new "$osd" > /dev/null
ceph-osd -i 0 --mkfs --osd-uuid "$osd" > /dev/null 2>&1
ceph-osd -i 0 > /dev/null 2>&1

# Waits up to 30 s for a command to succeed.
await() { for _ in $(seq 120); do "$@" && return; sleep .25; done; return 1; }
osd_is_up() { ceph osd stat | grep -q '1 up'; }
gateway_answers() { curl -sf -o /dev/null "http://127.0.0.1:$port/"; }
await osd_is_up
radosgw -n client.rgw.a
await gateway_answers || { echo "up.sh: the gateway did not answer; see $dir/log" >&2; exit 1; }
user() { radosgw-admin -n client.admin user create --uid="$1" --display-name="$1" --access-key="$2" --secret-key="$3" > /dev/null; }
user test AKTEST SKTEST
user other AKOTHER SKOTHER
echo "S3 at http://127.0.0.1:$port"
