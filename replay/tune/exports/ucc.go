package exports

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
	"mixdown/replay/tune/algorithms"
)

// UCC_TL_NAME_TUNE is tokens between #, each of fields between colons: collectives,
// ranges of bytes (the end of one is the beginning of the next, as UCC's own files
// have it), memory, team sizes in brackets, a score, @algorithm. The transport with
// the highest score is taken; inf forces one. The memory of a host is "host", not
// the "cpu" of UCC's guide.
func writeUCC(j *job) (*Output, error) {
	memory := "host"
	if j.Device == tune.GPU || j.Table != nil && onGPU(j.Table) {
		memory = "cuda"
	}
	tokens := map[string][]string{}
	for _, g := range groups(j.list) {
		for _, d := range g.list {
			layer, algorithm, err := algorithms.ParseUCC(d.Op, d.Variant)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrInexpressible, err)
			}
			token, err := uccToken(d, memory, algorithm)
			if err != nil {
				return nil, err
			}
			tokens[layer] = append(tokens[layer], token)
		}
	}
	var b strings.Builder
	for _, layer := range slices.Sorted(maps.Keys(tokens)) {
		// A shell reads the file: # and brackets must not mean anything to it.
		fmt.Fprintf(&b, "UCC_TL_%s_TUNE='%s'\n", strings.ToUpper(layer), strings.Join(tokens[layer], "#"))
	}
	j.out.Files = []File{{"ucc.env", []byte(b.String())}}
	j.out.Apply = []string{"set -a; . FILE; set +a", "for Open MPI also OMPI_MCA_coll_ucc_enable=1 OMPI_MCA_coll_ucc_priority=100"}
	j.out.Proof = []string{"UCC_LOG_LEVEL=INFO: the score map of each team", "UCC_COLL_TRACE=INFO: the transport of each collective"}
	return j.out, nil
}

func onGPU(t *tune.Table) bool {
	return slices.ContainsFunc(t.Rows, func(r tune.Row) bool { return r.Backend == "ucc" && r.Device == tune.GPU })
}

// uccToken is a decision as a token.
func uccToken(d Decision, memory, algorithm string) (string, error) {
	name, _ := algorithms.UCCCollective(d.Op) // ParseUCC has refused others
	fields := []string{name}
	everywhere := d.Min == 0 && d.Max == math.MaxInt64
	if !everywhere {
		from, to := d.Min, d.Max
		switch d.Op {
		case comm.AllToAllV, comm.AllGatherV, comm.ReduceScatterV:
			return "", fmt.Errorf("%w: %s: UCC knows no size of it, so a range never matches: one choice for all sizes", ErrInexpressible, d.Op)
		case comm.ReduceScatter: // by what one rank receives
			if d.Ranks == 0 {
				return "", fmt.Errorf("%w: %s: UCC goes by what one rank receives: the number of ranks has to be known", ErrInexpressible, d.Op)
			}
			from = ceil(from, int64(d.Ranks))
			if to < math.MaxInt64 {
				to = ceil(to+1, int64(d.Ranks)) - 1
			}
		}
		end := "inf"
		if to < math.MaxInt64 {
			end = uccSize(to + 1)
		}
		fields = append(fields, uccSize(from)+"-"+end)
	}
	fields = append(fields, memory)
	if d.Ranks > 0 {
		fields = append(fields, fmt.Sprintf("[%d]", d.Ranks))
	}
	fields = append(fields, "inf")
	if algorithm != "" {
		fields = append(fields, "@"+algorithm)
	}
	return strings.Join(fields, ":"), nil
}

func ceil(n, by int64) int64 { return n/by + min(1, n%by) }

// uccSize is a size with UCC's suffixes, which are powers of 1024.
func uccSize(n int64) string {
	for _, u := range []struct {
		shift  uint
		suffix string
	}{{40, "T"}, {30, "G"}, {20, "M"}, {10, "K"}} {
		if n > 0 && n%(1<<u.shift) == 0 {
			return fmt.Sprintf("%d%s", n>>u.shift, u.suffix)
		}
	}
	return fmt.Sprint(n)
}
