#!/bin/sh
# Makes analyze/html/assets/dist (committed, embedded in mixdown) of its sources.
# Needs node and npm. --check says whether dist is what the sources make.
set -eu
cd "$(dirname "$0")/../analyze/html/assets"
if ! command -v npm >/dev/null 2>&1; then
	echo "build_html: npm is not here: the committed bundle in dist is used as it is"
	exit 0
fi
npm ci --no-audit --no-fund --ignore-scripts --silent
node node_modules/esbuild/install.js
if [ "${1:-}" = --check ]; then
	old=$(mktemp -d)
	trap 'rm -rf "$old"' EXIT
	cp -r dist "$old"
	node build.js
	diff -r "$old/dist" dist && echo "build_html: dist is up to date"
else
	node build.js
fi
