#!/bin/sh
# Measures the step times of pipeline_times.json again, on this machine, and checks
# the pipeline orders that mixdown writes against PyTorch.
#
#   testdata/generate/validate.sh FOLDER [VENV]
#
# FOLDER gets orders/*.csv, orders.txt and pipeline_times.json. VENV (argument or
# environment) is a Python environment with requirements.txt; without it one is
# made in build/venv-torch, which takes 6 GB. MIXDOWN is the program, by default
# bin/mixdown. TIMES are the arguments of pipeline_times.py, by default "--starts 1":
# five minutes; "none" leaves the times out.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
[ $# -ge 1 ] || { echo "usage: validate.sh FOLDER [VENV]" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
venv=${2:-${VENV:-$root/build/venv-torch}}
mixdown=${MIXDOWN:-$root/bin/mixdown}
times=${TIMES:---starts 1}

if [ ! -x "$venv/bin/python" ]; then
	"${PYTHON:-python3.11}" -m venv "$venv"
	"$venv/bin/pip" install -q -r "$here/requirements.txt"
fi
python=$venv/bin/python
orders=$folder/orders
: >"$folder/errors.txt"
mkdir -p "$orders"

write() { # file spec
	"$mixdown" schedule "$2" --format torch-csv >"$orders/$1.csv"
}
size=ranks=4,microbatches=8
write gpipe "gpipe:$size"
write 1f1b "1f1b:$size"
write eager-1f1b "eager-1f1b:$size"
write depth-first "depth-first:$size,loops=2"
write breadth-first "breadth-first:$size,loops=2"
write breadth-first-lifo "breadth-first:$size,loops=2,backward-order=lifo"
write hybrid "hybrid:$size,loops=2,rounds=2"
write zb-h1 "zb-h1:$size"
write zb-h2 "zb-h2:$size"
write interleaved-zero-bubble "interleaved-zero-bubble:$size,loops=2"
write zbv "zbv:$size"
write dualpipev "dualpipev:$size"

cd "$orders"
failed=0
check() { # arguments of check_csv.py
	"$python" "$here/check_csv.py" "$@" 2>>"$folder/errors.txt" || failed=1
}
{
	check compare GPipe=gpipe.csv 1F1B=1f1b.csv Interleaved1F1B=depth-first.csv \
		LoopedBFS=breadth-first-lifo.csv \
		InterleavedZeroBubble=interleaved-zero-bubble.csv \
		ZBVZeroBubble=zbv.csv DualPipeV=dualpipev.csv
	check run ./*.csv
} >"$folder/orders.txt"
cat "$folder/orders.txt"

if [ "$times" != none ]; then
	# The arguments are words.
	# shellcheck disable=SC2086
	"$python" "$here/pipeline_times.py" $times "$folder/pipeline_times.json" 2>>"$folder/errors.txt" || failed=1
fi
exit $failed
