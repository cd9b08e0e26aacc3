package tune

import (
	"strings"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
)

// measured is a measurement with a narrow interval.
func measured(op comm.Op, ranks int, who string, bytes, ns int64) tune.Row {
	return tune.Row{
		Contender: tune.ParseContender(who), Op: op, DType: comm.Float32, Device: tune.Host, Ranks: ranks, Nodes: 1,
		In: bytes, Out: bytes, Streams: 1, Time: ns, Statistic: tune.Median, N: 100, CILow: ns - ns/200, CIHigh: ns + ns/200,
	}
}

func TestHeatAsText(t *testing.T) {
	x := &tune.Table{}
	err := x.Add(
		measured(comm.AllReduce, 4, "openmpi", 512, 1000), measured(comm.AllReduce, 4, "mpich", 512, 1010),
		measured(comm.AllReduce, 4, "openmpi", 1<<20, 90000), measured(comm.AllReduce, 4, "mpich", 1<<20, 10000),
		measured(comm.AllToAll, 8, "openmpi", 512, 1000), measured(comm.AllToAll, 8, "openmpi:onward", 512, 500),
		measured(comm.AllToAll, 8, "mpich", 3<<20, 2000), measured(comm.AllToAll, 8, "openmpi", 3<<20, 2100),
		measured(comm.Broadcast, 2, "mpich", 512, 10),  // alone: no row
		measured(comm.AllReduce, 4, "gloo", 512, 5000), // wins nowhere: no letter
	)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	writeHeat(&b, tune.Compare(x, nil))
	want := `
Who wins, by size: M mpich, O openmpi, N openmpi:onward
                      512 B   1 M   3 M
  all_reduce, 4 ranks    o     M#
  all_to_all, 8 ranks    N+          M
  (a small letter: not clear; +: the next best takes 1.5 times as long; #: 3 times)
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestShortSizes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 K", 1023: "1.0 K", 1024: "1 K", 1536: "1.5 K", 64 << 10: "64 K", 1<<20 - 1: "1.0 M", 5 << 40: "5 T"} {
		if got := shortSize(n); got != want || len(got) > 5 {
			t.Errorf("%d bytes: %q, want %q", n, got, want)
		}
	}
}
