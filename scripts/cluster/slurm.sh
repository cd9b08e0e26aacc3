#!/bin/sh
# A Slurm cluster of one machine, without cgroups and systemd, for tests.
#
#   slurm.sh start DIR    starts munged, slurmctld and slurmd with all they write
#                         in DIR; then SLURM_CONF=DIR/slurm.conf srun ...
#   slurm.sh stop DIR     ends them
#
# Needs root and the packages munge, slurmctld, slurmd and slurm-client of Debian.
set -eu

dir=$2
stop() {
	for daemon in slurmd slurmctld munged; do
		[ -s "$dir/$daemon.pid" ] || continue
		pid=$(cat "$dir/$daemon.pid")
		kill "$pid" 2>/dev/null || continue
		i=0
		while kill -0 "$pid" 2>/dev/null; do
			i=$((i + 1))
			[ $i -lt 100 ] || { kill -9 "$pid" 2>/dev/null || true; break; }
			sleep 0.1
		done
	done
}

# wait_for SECONDS COMMAND...
wait_for() {
	deadline=$(($(date +%s) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt $deadline ] || return 1
		sleep 0.1
	done
}

# sinfo tries for long to reach a controller that is not there.
idle() { [ "$(timeout 5 sinfo --noheader --format %T 2>/dev/null)" = idle ]; }

start() {
	mkdir -p "$dir/state" "$dir/spool"
	# munged insists on folders that only their owner writes, up to the root: its
	# own folder is below /run, not below a test's.
	socket=/run/mixdown-munge.$$
	mkdir -m 0755 "$socket"
	echo "$socket" >"$dir/socket"
	head -c 128 /dev/urandom >"$socket/key"
	chmod 0400 "$socket/key"
	munged --force --key-file="$socket/key" --socket="$socket/socket" --pid-file="$dir/munged.pid" \
		--log-file="$socket/log" --seed-file="$socket/seed" >"$dir/munged.out" 2>&1
	host=$(hostname -s)
	# Below the ports that Linux gives to connections. One in use is found out when the
	# controller ends at once.
	try=0
	until controller $((20000 + ($$ + 97 * try) % 6000 * 2)); do
		try=$((try + 1))
		[ $try -lt 5 ] || failed
	done
	slurmd -f "$SLURM_CONF"
	wait_for 30 idle || failed
}

failed() {
	timeout 5 sinfo -R >&2 || true
	tail -n 20 "$dir/slurmctld.log" "$dir/slurmd.log" >&2 || true
	stop
	echo "slurm did not start" >&2
	exit 1
}

answers() { timeout 5 scontrol ping 2>/dev/null | grep -q "is UP" || grep -q "fatal: " "$dir/slurmctld.log"; }

# controller PORT: starts slurmctld there; fails where it can't have the port.
controller() {
	port=$1
	cat >"$dir/slurm.conf" <<EOF
ClusterName=mixdown
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$socket/socket
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
KillWait=2
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
EOF
	export SLURM_CONF="$dir/slurm.conf"
	rm -f "$dir/slurmctld.log"
	slurmctld -f "$SLURM_CONF"
	wait_for 20 answers && ! grep -q "fatal: " "$dir/slurmctld.log"
}

case $1 in
start) start ;;
stop)
	stop
	[ ! -s "$dir/socket" ] || rm -rf "$(cat "$dir/socket")"
	;;
*)
	echo "usage: slurm.sh start|stop DIR" >&2
	exit 2
	;;
esac
