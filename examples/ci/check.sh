#!/bin/sh
# Has other people's readers look at the outputs of mixdown gate and mixdown diff:
# the published schema of SARIF 2.1.0 (jsonschema), junitparser, and benchstat; and at
# the workflow, the action and the GitLab job beside it: the schemas of GitHub and
# GitLab that check-jsonschema brings. "make test" runs it. See README.md.
#
#   examples/ci/check.sh [CANDIDATE [BASELINE]]    default: testdata/dp_moe_4rank twice
#
# SARIF_SCHEMA names the schema's file; else it is fetched. What is out of reach is
# skipped, and the exit code says only whether what was read is right.
set -eu
cd "$(dirname "$0")/../.."
mixdown=${MIXDOWN:-bin/mixdown}
out=build/examples/ci
rm -rf "$out/files"
mkdir -p "$out/files"
candidate=${1:-testdata/dp_moe_4rank}
baseline=${2:-$candidate}

code=0
"$mixdown" gate --baseline "$baseline" --candidate "$candidate" \
	--rule 'step +5%' --rule 'exposed_comm[op=*] +5% and +2ms' --rule 'count[op=*] +-0' --rule 'busbw[op=all_reduce] -5%' --rule 'step <= 1ns' --quiet \
	--output sarif="$out/files/gate.sarif" --output junit="$out/files/gate.xml" --output benchfmt="$out/files/gate.bench" >/dev/null 2>"$out/files/stderr" || code=$?
"$mixdown" diff testdata/fsdp1_4rank testdata/fsdp2_4rank --quiet --output sarif="$out/files/diff.sarif" --output junit="$out/files/diff.xml" --output benchfmt="$out/files/diff.bench" >/dev/null
case $code in
0 | 1 | 4) ;;
*)
	cat "$out/files/stderr" >&2
	exit "$code"
	;;
esac

schema=${SARIF_SCHEMA:-}
if [ -z "$schema" ]; then
	schema=$out/sarif-2.1.0.json
	[ -s "$schema" ] || curl -fsSL --max-time 30 -o "$schema" https://json.schemastore.org/sarif-2.1.0.json || rm -f "$schema"
fi
python=$out/venv/bin/python
if [ ! -x "$out/venv/bin/check-jsonschema" ]; then
	if ! { python3 -m venv "$out/venv" && "$out/venv/bin/pip" install --quiet --disable-pip-version-check jsonschema junitparser check-jsonschema; } 2>"$out/pip.log"; then
		rm -rf "$out/venv"
		echo "examples/ci: skipped: SARIF, JUnit and the CI files: jsonschema, junitparser and check-jsonschema can't be installed, see $out/pip.log"
	fi
fi
if [ -x "$python" ]; then
	"$python" - "$out/files" "$schema" <<'PYTHON'
import json, os, sys
import jsonschema, junitparser

folder, schema = sys.argv[1:]
validator = None
if os.path.exists(schema):
    with open(schema) as f:
        rules = json.load(f)
    validator = jsonschema.validators.validator_for(rules)(rules)
else:
    print("examples/ci: skipped: SARIF: its schema is out of reach, see SARIF_SCHEMA")
for verb in "gate", "diff":
    with open(os.path.join(folder, verb + ".sarif")) as f:
        log = json.load(f)
    if validator:
        faults = [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(log)]
        if faults:
            sys.exit(f"examples/ci: SARIF of {verb}:\n  " + "\n  ".join(faults))
        print(f"examples/ci: SARIF: {len(log['runs'][0]['results'])} results of {verb} are valid")
    suites = junitparser.JUnitXml.fromfile(os.path.join(folder, verb + ".xml"))
    cases = [case for suite in suites for case in suite]
    failed = sum(isinstance(r, junitparser.Failure) for case in cases for r in case.result)
    errors = sum(isinstance(r, junitparser.Error) for case in cases for r in case.result)
    if (len(cases), failed, errors) != (suites.tests, suites.failures, suites.errors) or not cases:
        sys.exit(f"examples/ci: JUnit of {verb}: {len(cases)} cases, {failed} failures, {errors} errors; its heads say {suites.tests}, {suites.failures}, {suites.errors}")
    print(f"examples/ci: JUnit: {len(cases)} cases of {verb} are read")
PYTHON
	for pair in github-workflows=github-workflow.yml github-actions=action.yml gitlab-ci=gitlab-ci.yml; do
		"$out/venv/bin/check-jsonschema" --builtin-schema "vendor.${pair%%=*}" "examples/ci/${pair#*=}" >"$out/files/schema" || {
			cat "$out/files/schema" >&2
			exit 1
		}
		echo "examples/ci: ${pair#*=} is valid"
	done
fi

if GOBIN="$PWD/$out/bin" GOFLAGS= go install golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da 2>"$out/go.log"; then
	for verb in gate diff; do
		"$out/bin/benchstat" -col run "$out/files/$verb.bench" >"$out/files/benchstat" 2>"$out/files/benchstat.err"
		if ! grep -q 'vs base' "$out/files/benchstat" || ! grep -q 'metric=step' "$out/files/benchstat" || grep -q "$verb.bench:" "$out/files/benchstat.err"; then
			cat "$out/files/benchstat" "$out/files/benchstat.err" >&2
			exit 1
		fi
		echo "examples/ci: benchfmt: benchstat compares $(grep -c 'metric=' "$out/files/benchstat") benchmarks of $verb"
	done
else
	echo "examples/ci: skipped: benchfmt: benchstat can't be installed, see $out/go.log"
fi
