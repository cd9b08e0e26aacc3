#!/bin/sh
# Makes the tables of a run, executes the notebooks on them, and reads all exports
# and a dataset of the run with other people's readers (check_readers.py of
# analyze/export and of ingest/dataset).
#
#   examples/run.sh [TRACES]     default: testdata/dp_moe_4rank; notebooks as
#                                executed go to build/examples
#   examples/run.sh -update      and replace those in examples/
#
# Needs Python 3.11 or later and, the first time, PyPI: without them nothing is
# run and the exit code is 0.
set -eu
cd "$(dirname "$0")/.."
out=build/examples
venv=$out/venv
update=
if [ "${1:-}" = -update ]; then
	update=yes
	shift
fi
traces=${1:-testdata/dp_moe_4rank}

python=${PYTHON:-python3}
if ! "$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
	echo "examples: skipped: no Python 3.11 or later with venv ($python)"
	exit 0
fi
mkdir -p "$out"
if ! cmp -s examples/requirements.txt "$venv/requirements.txt"; then
	rm -rf "$venv"
	"$python" -m venv "$venv"
	if ! "$venv/bin/pip" install --quiet --disable-pip-version-check -r examples/requirements.txt 2>"$out/pip.log"; then
		rm -rf "$venv"
		echo "examples: skipped: the packages of examples/requirements.txt can't be installed, is PyPI out of reach? See $out/pip.log"
		exit 0
	fi
	cp examples/requirements.txt "$venv/requirements.txt"
fi

mixdown=${MIXDOWN:-bin/mixdown}
if [ ! -x "$mixdown" ]; then
	echo "examples: $mixdown is not built: run make build" >&2
	exit 1
fi
"$mixdown" --quiet analyze "$traces" --format json --no-critical --parquet "$out/tables" --arrow "$out/tables.arrow" \
	--perfetto "$out/run.pftrace" --chrome "$out/run.json" --pprof "$out/run.pb.gz" --markdown "$out/report.md" >"$out/report.json"

MIXDOWN_TABLES=$(cd "$out/tables" && pwd)
export MIXDOWN_TABLES
for notebook in duckdb polars; do
	result=$out/$notebook.ipynb
	[ -z "$update" ] || result=examples/$notebook.ipynb
	"$venv/bin/python" examples/execute.py "examples/$notebook.ipynb" "$result"
	echo "$result: executed"
done
"$venv/bin/python" analyze/export/check_readers.py "$out"

rm -rf "$out/dataset"
"$mixdown" --quiet ingest "$traces" -o "$out/dataset"
"$venv/bin/python" ingest/dataset/check_readers.py "$mixdown" "$out/dataset"
