#!/bin/sh
# What "make check-cluster" does; RANKS is how many ranks are ingested.
set -eu
cd "$(dirname "$0")/.."

packages=""
for p in munged:munge slurmctld:slurmctld slurmd:slurmd srun:slurm-client; do
	command -v "${p%%:*}" >/dev/null 2>&1 || packages="$packages ${p##*:}"
done
if [ -n "$packages" ]; then
	if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		echo "missing:$packages: install them, and run this as root" >&2
		exit 1
	fi
	echo "installing:$packages"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq || true
	# shellcheck disable=SC2086 # a list of package names
	apt-get install -y -qq --no-install-recommends $packages >/dev/null
fi
ulimit -n 65536 2>/dev/null || true # one file for each rank that is made
MIXDOWN_CLUSTER_RANKS=${RANKS:-2000} go test -count=1 -timeout 60m -v -run 'TestSlurm|TestMPI' ./cmd/mixdown
(cd examples/cluster/check && go run . ../ingest-job.yaml ../job.yaml ../mpijob.yaml)
