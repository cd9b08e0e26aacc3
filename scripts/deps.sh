#!/bin/sh
# Sees to what building and testing needs. As root on Debian or Ubuntu it
# installs what is missing; otherwise it lists it and stops.
set -eu

missing=""
need_command() { # command package
	command -v "$1" >/dev/null 2>&1 || missing="$missing $2"
}
need_package() { # package: libraries have no command to look for
	dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed' || missing="$missing $1"
}

need_command g++ g++
need_command make make
need_command cmake cmake
need_command ninja ninja-build
need_command pkg-config pkg-config
need_command protoc protobuf-compiler
need_command mpirun.openmpi openmpi-bin
need_command mpirun.mpich mpich
if command -v dpkg-query >/dev/null 2>&1; then
	for package in libprotobuf-dev libgloo-dev libopenmpi-dev libmpich-dev libucx-dev libzfp1; do
		need_package "$package"
	done
fi

# For the notebooks and readers of examples/run.sh, which does without them.
optional=""
python3 -c 'import ensurepip' >/dev/null 2>&1 || optional=" python3-venv"

# For scripts/check_html.sh, which does without it: a browser (80 MB) and npm. They
# come along with the rest, not by themselves.
browser=""
command -v chromium >/dev/null 2>&1 || browser="$browser chromium fonts-dejavu-core"
command -v npm >/dev/null 2>&1 || browser="$browser nodejs npm"

if [ -n "$missing" ]; then
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
		missing="$missing$optional"
		echo "installing:$missing"
		export DEBIAN_FRONTEND=noninteractive
		apt-get update -qq || true # an unreachable extra source must not stop us
		# shellcheck disable=SC2086 # a list of package names
		apt-get install -y -qq --no-install-recommends $missing >/dev/null
		# shellcheck disable=SC2086
		[ -z "$browser" ] || apt-get install -y -qq --no-install-recommends $browser >/dev/null 2>&1 ||
			echo "not installed:$browser: reports are not looked at in a browser"
	else
		echo "missing:$missing" >&2
		echo "install them, on Debian or Ubuntu: sudo apt-get install$missing" >&2
		exit 1
	fi
fi

if ! command -v go >/dev/null 2>&1; then
	echo "missing: Go 1.26 or later (https://go.dev/dl)" >&2
	exit 1
fi
