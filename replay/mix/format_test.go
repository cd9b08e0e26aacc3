package mix_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/ingest/comm"
	"mixdown/replay/mix"
)

// What is written is read again as the same.
func TestOf(t *testing.T) {
	for _, rules := range [][]mix.Rule{
		{{Max: math.MaxInt64, Backend: "gloo"}},
		{{Op: comm.AllReduce, Min: 1 << 20, Max: math.MaxInt64, Backend: "openmpi"}, {Max: math.MaxInt64, Backend: "gloo"}},
		{{Op: comm.AllToAllV, Min: 1000, Max: 3 << 10, Group: "ep", Backend: "mpich"}, {Op: comm.Send, Max: 4095, Backend: "gloo"}},
	} {
		written := mix.Of(rules...)
		read, err := mix.Parse(written.Text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(written, read); diff != "" {
			t.Errorf("%s (-written +read):\n%s", written.Text, diff)
		}
	}
}
