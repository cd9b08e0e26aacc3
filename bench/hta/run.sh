#!/bin/sh
# Compares mixdown's times of a rank with those of HolisticTraceAnalysis (HTA) and
# says why each difference is there (bench/hta/README.md).
#
#   bench/hta/run.sh [TRACES...]     default: the sets below, of $MIXDOWN_CORPUS
#
# The exit code is 1 if a difference has no known reason. Needs Python 3.11 or
# later and, the first time, PyPI: without it nothing is run and the exit code is 0.
set -eu
cd "$(dirname "$0")/../.."
out=build/bench/hta
venv=$out/venv

if [ $# -eq 0 ]; then
	if [ -z "${MIXDOWN_CORPUS:-}" ]; then
		echo "bench/hta: skipped: MIXDOWN_CORPUS is not set and no traces are named"
		exit 0
	fi
	# Chosen so that each reason for a difference occurs, and none takes long.
	for set in param/dlrm_8rank/kineto hta/trace_filter hta/nccl_parser_config hta/negative_queue_length_values_check \
		hta/trace_diff/control hta/critical_path/alexnet; do
		if [ -e "$MIXDOWN_CORPUS/$set" ]; then
			set -- "$@" "$MIXDOWN_CORPUS/$set"
		else
			echo "bench/hta: skipped: $set is not in MIXDOWN_CORPUS"
		fi
	done
	[ $# -gt 0 ] || exit 0
fi

python=${PYTHON:-python3}
if ! "$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
	echo "bench/hta: skipped: no Python 3.11 or later with venv ($python)"
	exit 0
fi
mkdir -p "$out"
if ! cmp -s bench/hta/requirements.txt "$venv/requirements.txt"; then
	rm -rf "$venv"
	"$python" -m venv "$venv"
	if ! "$venv/bin/pip" install --quiet --disable-pip-version-check -r bench/hta/requirements.txt 2>"$out/pip.log"; then
		rm -rf "$venv"
		echo "bench/hta: skipped: the packages of bench/hta/requirements.txt can't be installed, is PyPI out of reach? See $out/pip.log"
		exit 0
	fi
	cp bench/hta/requirements.txt "$venv/requirements.txt"
fi

mixdown=${MIXDOWN:-bin/mixdown}
if [ ! -x "$mixdown" ]; then
	echo "bench/hta: $mixdown is not built: run make build" >&2
	exit 1
fi
"$venv/bin/python" -B bench/hta/compare.py "$mixdown" "$out" "$@"
