#!/bin/sh
# What "make dist" does: a tarball that needs no build, in build/dist. The same
# commit, built with the same compilers, gives the same bytes.
set -eu
cd "$(dirname "$0")/.."
umask 022

out=build/dist
number=$(sed -n 's/^const Number = "\(.*\)"$/\1/p' cmd/mixdown/version/*.go)
described=$(git describe --tags --always --dirty --abbrev=12)
case $described in
v[0-9]*) version=${described#v} ;;
*) version=$number-$described ;; # no tag yet: a commit
esac
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
export CGO_ENABLED=0 LC_ALL=C TZ=UTC
arch=$(go env GOARCH)
name=mixdown-$version-linux-$arch
root=$out/$name
rm -rf "$out"/mixdown-*
mkdir -p "$root/bin"

# Programs. No path of this machine is in them.
go build -trimpath -buildvcs=false -ldflags "-s -w -X mixdown/cmd/mixdown/version.described=$described" \
	-o "$root/bin/mixdown" ./cmd/mixdown
cmake -S native -B $out/native -G Ninja -DCMAKE_BUILD_TYPE=Release \
	-DMIXDOWN_TESTING=OFF -DMIXDOWN_STATIC_PROTOBUF=ON -DCMAKE_SKIP_RPATH=ON \
	"-DCMAKE_CXX_FLAGS=-ffile-prefix-map=$PWD/=" \
	"-DCMAKE_EXE_LINKER_FLAGS=-s -Wl,--gc-sections" -DCMAKE_MODULE_LINKER_FLAGS=-s \
	-DCMAKE_RUNTIME_OUTPUT_DIRECTORY="$PWD/$out/built" -DCMAKE_LIBRARY_OUTPUT_DIRECTORY="$PWD/$out/built" \
	>$out/native.log 2>&1 || { cat $out/native.log; exit 1; }
cmake --build $out/native -j "$(nproc)" >>$out/native.log 2>&1 || { cat $out/native.log; exit 1; }
# These and nothing else: what exists for tests stays out, and none is missing.
for file in mixdown-worker libmixdown_gloo.so libmixdown_openmpi.so libmixdown_mpich.so libmixdown_ucx.so \
	libmixdown_nccl.so libmixdown_rccl.so mixdown-one-session.so; do
	cp "$out/built/$file" "$root/bin/" || { echo "$file was not built: see $out/native.log" >&2; exit 1; }
done
if readelf -lW "$root/bin/mixdown" | grep -q INTERP; then
	echo "bin/mixdown is linked dynamically" >&2
	exit 1
fi
if readelf -dW "$root/bin/mixdown-worker" | grep -E 'protobuf|R(UN)?PATH' >&2; then
	echo "bin/mixdown-worker needs what a bare system lacks" >&2
	exit 1
fi

# What belongs beside them.
go run ./scripts/packaging man "$root/share/man"
complete() { # shell file
	mkdir -p "$root/share/$(dirname "$2")"
	"$root/bin/mixdown" completion "$1" >"$root/share/$2"
}
complete bash bash-completion/completions/mixdown
complete zsh zsh/site-functions/_mixdown
complete fish fish/vendor_completions.d/mixdown.fish
protobuf=/usr/share/doc/libprotobuf-dev/copyright # Debian's place
go run ./scripts/packaging licences "$root/THIRD_PARTY_LICENSES.txt" \
	uPlot=analyze/html/assets/dist/LICENSES.txt "protobuf, in bin/mixdown-worker=$protobuf"
cp LICENSE README.md "$root/"
git ls-files -z examples | xargs -0 cp --parents -t "$root"

(cd "$root" && find . -type f ! -name SHA256SUMS | sed 's|^\./||' | sort | xargs sha256sum >SHA256SUMS)
tar --sort=name --format=gnu --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
	--mode=u+rwX,go+rX,go-w -C $out -cf - "$name" | gzip -9n >"$out/$name.tar.gz"
(cd $out && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")

(cd "$root" && du -ks --apparent-size bin/* THIRD_PARTY_LICENSES.txt share examples | awk '{ printf "%8d KiB  %s\n", $1, $2 }')
printf '%8d KiB  %s\n' "$(du -k --apparent-size "$out/$name.tar.gz" | cut -f1)" "$out/$name.tar.gz"
rm -rf "$root"
