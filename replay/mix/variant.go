package mix

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Library is the library of a backend that may have settings: "nccl" of
// "nccl:ring/ll128".
func Library(backend string) string {
	library, _, _ := strings.Cut(backend, ":")
	return library
}

// Words of NCCL's settings: algorithms as its tuner's files spell them, and
// protocols.
var (
	ncclAlgorithms = []string{"ring", "tree", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"}
	ncclProtocols  = []string{"ll", "ll128", "simple"}
)

// maxChannels is NCCL's MAXCHANNELS.
const maxChannels = 64

// channels is N of the word "ch=N", 0 when it is not that.
func channels(word string) int {
	digits, ok := strings.CutPrefix(word, "ch=")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 || n > maxChannels {
		return 0
	}
	return n
}

// channelsOf is the number of channels in a backend's settings, 0 when they say
// none.
func channelsOf(backend string) int {
	_, settings, _ := strings.Cut(backend, ":")
	for word := range strings.SplitSeq(settings, "/") {
		if n := channels(word); n > 0 {
			return n
		}
	}
	return 0
}

// checkBackend refuses settings that the worker would refuse: a backend is a
// library, or for nccl a library with an algorithm, a protocol and a number of
// channels, each at most once, in any order: "nccl:ring/ll128/ch=8".
func checkBackend(backend string) error {
	library, settings, has := strings.Cut(backend, ":")
	if !has {
		return nil
	}
	if library != "nccl" {
		return fmt.Errorf("backend %q: only nccl has settings", backend)
	}
	seen := map[string]bool{}
	for word := range strings.SplitSeq(settings, "/") {
		kind := ""
		switch {
		case slices.Contains(ncclAlgorithms, word):
			kind = "algorithms"
		case slices.Contains(ncclProtocols, word):
			kind = "protocols"
		case channels(word) > 0:
			kind = "numbers of channels"
		default:
			return fmt.Errorf("backend %q: %q is neither an algorithm (%s) nor a protocol (%s) nor ch=1 to ch=%d", backend, word,
				strings.Join(ncclAlgorithms, ", "), strings.Join(ncclProtocols, ", "), maxChannels)
		}
		if seen[kind] {
			return fmt.Errorf("backend %q: two %s", backend, kind)
		}
		seen[kind] = true
	}
	return nil
}
