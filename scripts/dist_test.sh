#!/bin/sh
# What "make check-dist" does: the tarball of "make dist" in systems that have nothing
# but what debootstrap puts there. First without anything else: the analysis, and what
# "mixdown backends" says is missing. Then that is installed, and communication is
# replayed, data verified. Needs root and a network; a system whose archive can't be
# reached is left out with a line that says so. SUITES names others; DEBIAN_MIRROR and
# UBUNTU_MIRROR are where they come from.
set -eu
cd "$(dirname "$0")/.."

suites=${SUITES:-bookworm noble}
debian=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
ubuntu=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
traces=testdata/dp_moe_4rank

if [ "$(id -u)" != 0 ]; then
	echo "run this as root: it makes systems and changes into them" >&2
	exit 1
fi
packages=""
for p in debootstrap:debootstrap gpg:gpg wget:wget; do
	command -v "${p%%:*}" >/dev/null 2>&1 || packages="$packages ${p##*:}"
done
if [ -n "$packages" ]; then
	echo "installing:$packages"
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -qq || true
	# shellcheck disable=SC2086 # a list of package names
	apt-get install -y -qq --no-install-recommends $packages >/dev/null
fi

tarball=$(ls build/dist/mixdown-*-linux-*.tar.gz)
(cd build/dist && sha256sum --quiet -c "${tarball##*/}.sha256")
work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT

# inside ROOT COMMAND: in namespaces of its own, so that nothing stays mounted or
# running.
inside() {
	# shellcheck disable=SC2016 # the inner shell's variables
	unshare --mount --pid --fork sh -c 'root=$1
		shift
		mount --bind "$root" "$root"
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C DEBIAN_FRONTEND=noninteractive \
			chroot "$root" sh -ec "$@"' sh "$@"
}

# ubuntu_keys FILE: the key that Ubuntu signs its archive with, from its own package,
# known by its fingerprint (https://wiki.ubuntu.com/SecurityTeam/FAQ).
ubuntu_keys() {
	wget -q -O "$work/keys.deb" "$ubuntu/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb"
	dpkg-deb -x "$work/keys.deb" "$work/keys"
	mkdir -m 700 -p "$work/gpg"
	gpg --homedir "$work/gpg" --quiet --import "$work/keys/usr/share/keyrings/ubuntu-archive-keyring.gpg"
	gpg --homedir "$work/gpg" --quiet --export F6ECB3762474EDA9D21B7022871920D1991BC93C >"$1"
	[ -s "$1" ]
}

# bare SUITE ROOT: what debootstrap makes, nothing else. It does not know releases that
# are newer than itself; all of Ubuntu's are made alike (gutsy).
bare() {
	case $1 in
	jammy | noble | plucky | questing)
		ubuntu_keys "$work/ubuntu.gpg" &&
			debootstrap --variant=minbase --components=main,universe --keyring="$work/ubuntu.gpg" "$1" "$2" "$ubuntu" gutsy
		;;
	*) debootstrap --variant=minbase "$1" "$2" "$debian" ;;
	esac
}

failed=0
expect() { # file pattern
	if ! grep -Eq -- "$2" "$1"; then
		echo "  FAILED: no line matches: $2" >&2
		sed 's/^/  | /' "$1" >&2
		failed=1
	fi
}

tested=""
for suite in $suites; do
	case $suite in
	jammy | noble | plucky | questing) archive=$ubuntu ;;
	*) archive=$debian ;;
	esac
	if ! wget -q --tries=1 --timeout=20 -O /dev/null "$archive/dists/$suite/InRelease"; then
		echo "$suite: skipped: $archive can't be reached"
		continue
	fi
	root=$work/$suite
	echo "$suite: a bare system of $archive"
	if ! bare "$suite" "$root" >"$work/log" 2>&1; then
		tail -20 "$work/log" >&2
		exit 1
	fi
	cp /etc/resolv.conf "$root/etc/resolv.conf"
	tar -C "$root/opt" -xzf "$tarball"
	mv "$root"/opt/mixdown-* "$root/opt/mixdown"
	cp -r "$traces" "$root/opt/traces"
	ln -s /opt/mixdown/bin/mixdown "$root/usr/local/bin/mixdown"

	inside "$root" 'cd /opt/mixdown && sha256sum --quiet -c SHA256SUMS && find . -type f ! -name SHA256SUMS | wc -l && wc -l <SHA256SUMS' >"$work/out"
	[ "$(sed -n 1p "$work/out")" = "$(sed -n 2p "$work/out")" ] || { echo "  FAILED: SHA256SUMS does not list all files" >&2; failed=1; }
	inside "$root" 'mixdown analyze /opt/traces' >"$work/out"
	expect "$work/out" '^4 of 4 ranks, backend gloo, 36 collectives matched'
	echo "  analyze: done with nothing installed"
	inside "$root" 'mixdown backends' >"$work/out"
	expect "$work/out" '^gloo +not available: libgloo\.so\.0 is not installed: .*apt-get install libgloo0$'
	expect "$work/out" '^openmpi +not available: mpirun\.openmpi is not on PATH: .*apt-get install openmpi-bin$'
	expect "$work/out" '^mpich +not available: mpirun\.mpich is not on PATH: .*apt-get install mpich$'
	expect "$work/out" '^ucx +not available: libucp\.so\.0 is not installed: .*apt-get install libucx0$'
	# What it says to install is what is installed.
	wanted=$(sed -n 's/.*apt-get install \([a-z0-9-]*\)$/\1/p' "$work/out" | tr '\n' ' ')
	echo "  backends: says to install $wanted"
	inside "$root" "apt-get update -qq; apt-get install -y -qq --no-install-recommends $wanted" >"$work/log" 2>&1 ||
		{ tail -20 "$work/log" >&2; exit 1; }
	inside "$root" 'mixdown backends' >"$work/out"
	for backend in gloo openmpi mpich ucx; do
		expect "$work/out" "^$backend +[^ ].* \((host memory)"
	done
	for backend in openmpi mpich ucx; do
		# Ubuntu 24.04 built libmpich for PMIx, which its mpirun.mpich does not speak: it
		# starts every program of MPI alone (MPICH 4.2.0-5build3;
		# https://bugs.launchpad.net/ubuntu/+source/mpich/+bug/2072338). It must say so.
		if [ "$suite/$backend" = noble/mpich ]; then
			inside "$root" "mixdown replay /opt/traces --iters 2 --mix '*=mpich'" >"$work/out" 2>"$work/log" || true
			if grep -q '^\*=mpich .* verified$' "$work/out"; then
				echo "  replay with mpich: works: this distribution has mended it"
			else
				expect "$work/log" '^mixdown: .*own mpirun .*bug/2072338'
				echo "  replay with mpich: not possible with this distribution's MPICH, and says so"
			fi
			continue
		fi
		inside "$root" "mixdown replay /opt/traces --iters 2 --mix '*=$backend'" >"$work/out" 2>"$work/log" ||
			{ cat "$work/log" >&2; failed=1; }
		expect "$work/out" '^traced = \*=gloo .* verified$'
		expect "$work/out" "^\*=$backend .* verified\$"
		echo "  replay with gloo and $backend: $(grep -c 'verified$' "$work/out") plans, data verified"
	done
	rm -rf --one-file-system "$root"
	tested="$tested $suite"
done
[ "$failed" = 0 ] || exit 1
[ -n "$tested" ] || { echo "no system was tested" >&2; exit 1; }
echo "the package runs on:$tested"
