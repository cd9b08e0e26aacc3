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

// endsInSetting says whether text ends in a word of settings that has a value, so
// that the "=" that follows is the setting's.
func endsInSetting(text string) bool {
	word := text[strings.LastIndexAny(text, "/:")+1:]
	return len(word) < len(text) && (word == "ch" || word == "rndv")
}

// Words of NCCL's settings: algorithms as its tuner's files spell them, and
// protocols.
var (
	ncclAlgorithms = []string{"ring", "tree", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"}
	ncclProtocols  = []string{"ll", "ll128", "simple"}
)

// maxChannels is NCCL's MAXCHANNELS.
const maxChannels = 64

// ucxTransports are the words of UCX's settings: transports as UCX_TLS spells them.
var ucxTransports = []string{"self", "sm", "posix", "sysv", "cma", "knem", "xpmem", "tcp", "ib", "rc", "rc_v", "rc_x", "ud", "ud_v", "ud_x", "dc", "dc_x"}

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
// library, for nccl and rccl with an algorithm, a protocol and a number of channels, each at
// most once, in any order ("nccl:ring/ll128/ch=8"), for ucx with transports and the
// size from which on messages are fetched ("ucx:tcp/rndv=65536").
func checkBackend(backend string) error {
	library, settings, has := strings.Cut(backend, ":")
	if !has {
		return nil
	}
	kindOf, known := ncclWord, ncclWords
	switch library {
	case "nccl", "rccl":
	case "ucx":
		kindOf, known = ucxWord, ucxWords
	default:
		return fmt.Errorf("backend %q: only nccl, rccl and ucx have settings", backend)
	}
	seen := map[string]bool{}
	for word := range strings.SplitSeq(settings, "/") {
		kind, once := kindOf(word)
		if kind == "" {
			return fmt.Errorf("backend %q: %q is %s", backend, word, known())
		}
		if seen[kind] && once {
			return fmt.Errorf("backend %q: two %s", backend, kind)
		}
		seen[kind] = true
	}
	return nil
}

// ncclWord is what kind of setting a word is, "" for none, and whether there can be
// one of the kind only.
func ncclWord(word string) (kind string, once bool) {
	switch {
	case slices.Contains(ncclAlgorithms, word):
		return "algorithms", true
	case slices.Contains(ncclProtocols, word):
		return "protocols", true
	case channels(word) > 0:
		return "numbers of channels", true
	}
	return "", false
}

func ncclWords() string {
	return fmt.Sprintf("neither an algorithm (%s) nor a protocol (%s) nor ch=1 to ch=%d",
		strings.Join(ncclAlgorithms, ", "), strings.Join(ncclProtocols, ", "), maxChannels)
}

// ucxWord is as ncclWord.
func ucxWord(word string) (kind string, once bool) {
	if slices.Contains(ucxTransports, word) {
		return "transports", false
	}
	if digits, ok := strings.CutPrefix(word, "rndv="); ok && digits != "" && len(digits) <= 12 && strings.Trim(digits, "0123456789") == "" {
		return "sizes of rndv", true
	}
	return "", false
}

func ucxWords() string {
	return fmt.Sprintf("neither a transport (%s) nor rndv=BYTES", strings.Join(ucxTransports, ", "))
}
