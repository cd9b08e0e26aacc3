#!/bin/sh
# Looks at HTML reports of all testdata in a headless Chromium: no fault of the
# page, hover and zoom, accessibility, phone, paper. Needs bin/mixdown. Without
# Chromium or npm it says so and skips; --install gets Debian's Chromium first.
#
# Three of them are held against pictures of how they looked before; --update takes
# over how they look now. --short looks at a few that stand for the others, as make
# test does.
#
#   scripts/check_html.sh [--install] [--short|--update] [WORK [REPORT...]]
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
assets=$here/analyze/html/assets
if [ "${1:-}" = --install ]; then
	shift
	command -v chromium >/dev/null 2>&1 || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core; } >/dev/null ||
		echo "check_html: Chromium could not be installed"
fi
short=
case ${1:-} in
--short)
	short="dp_moe_4rank diff_steps tune_table hostile diff_hostile"
	shift
	;;
--update)
	short="dp_moe_4rank diff_steps tune_table"
	UPDATE=1
	export UPDATE
	shift
	;;
esac
if ! command -v "${CHROMIUM:-chromium}" >/dev/null 2>&1; then
	echo "check_html: skipped: no Chromium here (apt-get install -y chromium, or $0 --install)"
	exit 0
fi
if ! command -v npm >/dev/null 2>&1; then
	echo "check_html: skipped: no npm here"
	exit 0
fi
# The installed packages are used as long as the lock file is that of their time.
if ! cmp -s "$assets/package-lock.json" "$assets/node_modules/.mixdown-lock.json"; then
	if ! (cd "$assets" && npm ci --no-audit --no-fund --ignore-scripts --silent); then
		echo "check_html: skipped: npm can't get its packages here"
		exit 0
	fi
	cp "$assets/package-lock.json" "$assets/node_modules/.mixdown-lock.json"
fi
work=${1:-$here/build/html}
[ $# -gt 0 ] && shift
mkdir -p "$work"
# shellcheck disable=SC2086 # a list of names
exec node "$assets/check/check.js" "${MIXDOWN:-$here/bin/mixdown}" "$here/testdata" "$work" $short "$@"
