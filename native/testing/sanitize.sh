#!/bin/sh
# Builds the worker with sanitizers and runs its tests on it:
#   sanitize.sh BUILD_FOLDER [address,undefined|thread]...
# Both by default. Arguments for go test may be in GOTESTFLAGS.
set -eu

native=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
build=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- address,undefined thread

export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1

for sanitizer in "$@"; do
	folder=$build/$sanitizer
	skip=""
	# Open MPI's threads complete each other's operations and synchronise by atomic
	# instructions that ThreadSanitizer does not see in a library built without it;
	# MPICH crashes in it; that was not traced.
	[ "$sanitizer" = thread ] && skip="openmpi;mpich"
	cmake -S "$native" -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release \
		-DCMAKE_RUNTIME_OUTPUT_DIRECTORY="$folder/bin" -DCMAKE_LIBRARY_OUTPUT_DIRECTORY="$folder/bin" \
		-DMIXDOWN_TESTING=ON "-DMIXDOWN_SANITIZE=$sanitizer" "-DMIXDOWN_SKIP=$skip" >"$folder.log" 2>&1 || { cat "$folder.log"; exit 1; }
	cmake --build "$folder" >>"$folder.log" 2>&1 || { cat "$folder.log"; exit 1; }
	(cd "$native" && MIXDOWN_WORKER=$folder/bin/mixdown-worker go test -count=1 -timeout 30m ${GOTESTFLAGS:-} .)
done
