#!/bin/sh
# Checks on a machine with one GPU what tests without one can't: how exact spans
# are, NCCL or RCCL itself, ranks that share the GPU, a mixed plan. Takes less than
# eight minutes and prints a table; ends with 1 when a line of it fails.
#
#   gpu_check.sh [--hip] [FOLDER]   an NVIDIA GPU, or with --hip one of AMD; the
#                                   worker's folder, default ../bin, built with
#                                   -DMIXDOWN_TESTING=ON, as make build does
#
# Where there is no Go, put the tests' program beside the worker, made elsewhere by
# go test -c -o bin/testing/native.test ./native
set -u

kind=cuda library=nccl title=NCCL staged='TestStagedMatrix/(gloo|openmpi|mpich|ucx)$' mixed='TestMixedOnDevice/gloo$'
if [ "${1:-}" = --hip ]; then
	kind=hip library=rccl title=RCCL staged='TestStagedMatrix/gloo_on_hip$' mixed='TestMixedOnDevice/gloo_on_hip$'
	shift
fi

native=$(cd "$(dirname "$0")" && pwd)
folder=$(cd "${1:-$native/../bin}" && pwd) || exit 2
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=0
table=""

export MIXDOWN_WORKER=$folder/mixdown-worker MIXDOWN_GPU=$kind

tests=$folder/testing/native.test
if [ ! -x "$tests" ]; then
	(cd "$native" && go test -c -o "$tests" .) || exit 2
fi

# run NAME SECONDS COMMAND...: a line of the table, the output when it fails.
run() {
	name=$1 limit=$2
	shift 2
	begin=$(date +%s)
	timeout -k 5 "$limit" "$@" >"$logs/log" 2>&1
	code=$?
	verdict=passed
	if [ $code -ne 0 ]; then
		verdict="FAILED ($code)"
		[ $code -eq 124 ] && verdict="FAILED (more than $limit s)"
		failed=1
		echo "== $name"
		tail -n 60 "$logs/log"
	elif grep -q -- '--- SKIP' "$logs/log"; then
		verdict="skipped in part: $(grep -A1 -- '--- SKIP' "$logs/log" | tail -n 1 | sed 's/^ *//')"
	fi
	table="$table$(printf '%-52s %4d s  %s' "$name" $(($(date +%s) - begin)) "$verdict")
"
}

# run_tests NAME SECONDS PATTERN: the same with tests of the worker.
run_tests() {
	run "$1" "$2" sh -c "cd '$native' && '$tests' -test.count=1 -test.v -test.run '$3'"
}

echo "== spans and clocks"
"$folder/testing/gpu-check" $kind | tee "$logs/spans"
grep -q 'OUT OF BOUNDS' "$logs/spans" && failed=1
spans=$(grep -c ' ok$' "$logs/spans")
[ "$spans" -gt 0 ] || failed=1
table="$table$(printf '%-52s %4s    %s' 'spans of 20 us to 20 ms within 2 %' '' "$spans lines ok, $(grep -c 'OUT OF BOUNDS' "$logs/spans") out of bounds")
"

version=$("$MIXDOWN_WORKER" --probe $library | sed -n 's/.*"version":"\([0-9.]*\)".*/\1/p')
echo "== $title ${version:-is not there}"
run_tests "$title, all operations, one rank" 60 "TestDeviceMatrix/$library/1\$"

# Several ranks on one GPU: since 2.30 a switch; before, each rank says that it is
# on a host of its own, and they talk over sockets.
minor=$(echo "${version:-0.0}" | cut -d. -f2)
if [ "$minor" -ge 30 ]; then
	export NCCL_MULTI_RANK_GPU_ENABLE=1
else
	export MIXDOWN_TEST_RANK_ENV="NCCL_HOSTID=rank%d" NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1
	: "${NCCL_SOCKET_IFNAME:=lo}"
	export NCCL_SOCKET_IFNAME
fi
run_tests "Libraries of the host through pinned memory, two ranks" 120 "$staged"
run_tests "$title, all operations, two ranks on the GPU" 90 "TestDeviceMatrix/$library/2\$"
run_tests "$title with settings" 30 "TestSettings/$library\$"
run_tests "$title and Gloo in one plan, four ranks, times in order" 90 "$mixed"

echo
printf '%s' "$table"
exit $failed
