package mix_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
)

var update = flag.Bool("update", false, "rewrite the expected output")

// TestText compares what people read.
func TestText(t *testing.T) {
	for name, c := range map[string]struct {
		plan *planpb.Plan
		caps string
	}{
		"accepted":  {plan: write(t, both, "g0 g1@openmpi x1", "g0 g1@openmpi x0")},
		"two-ranks": {plan: write(t, both, "h g0@gloo g1@openmpi", "h g1@openmpi g0@gloo")},
		"ring":      {plan: write(t, ring, "g0 c w<1 g2", "g1 c/1<0 g0/1", "g2 g1")},
		"transfers": {plan: write(t, both, "s1 r1", "s0 r0")},
		"long-ring": {plan: write(t, nil, longRing(15)...)},
		"gpu":       {plan: write(t, both, "c g0@nccl/1<0 g1@nccl/2<0", "c g0@nccl/1<0 g1@nccl/2<0")},
		"many":      {plan: write(t, [][]int32{{0, 1}, {1, 2}}, "g0 g0 s1 g0@openmpi", "g0=broadcast g0 g1@mpich g0", "g1"), caps: blockingGloo},
		"malformed": {plan: changed(write(t, both, "g0", "g0"), func(p *planpb.Plan) { communication(p, 1, 0).Group = 7 })},
	} {
		t.Run(name, func(t *testing.T) {
			opts := mix.CheckOptions{}
			if c.caps != "" {
				opts.Capabilities = capabilities(t, c.caps)
			}
			var got bytes.Buffer
			r := mix.Inspect(c.plan, opts)
			if err := r.WriteText(&got); err != nil {
				t.Fatal(err)
			}
			if err := r.Err(); err != nil {
				got.WriteString("\nError: " + err.Error() + "\n")
			}
			golden(t, name+".txt", got.Bytes())
		})
	}
}

// longRing lets every rank send to the next before it receives.
func longRing(n int) (ranks []string) {
	for r := range n {
		ranks = append(ranks, fmt.Sprintf("s%d r%d", (r+1)%n, (r+n-1)%n))
	}
	return ranks
}

// TestJSON compares what scripts read.
func TestJSON(t *testing.T) {
	r := mix.Inspect(write(t, both, "g0@gloo s1", "r0 g0@gloo"), mix.CheckOptions{})
	got, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "circle.json", append(got, '\n'))
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (go test -update rewrites it):\n%s", path, got)
	}
}

// TestWhatIsNotChecked: what a plan does not say is listed, never passed over in
// silence: tuning files and environments (D12), when communicators are made and
// destroyed (D16), buffers, and measurements.
func TestWhatIsNotChecked(t *testing.T) {
	codes := func(r *mix.Report) (list []string) {
		for _, g := range r.NotChecked {
			list = append(list, g.Code)
		}
		return list
	}
	p := write(t, both, "g0@mylib", "g0@mylib")
	if got := codes(mix.Inspect(p, mix.CheckOptions{})); !slices.Equal(got, []string{"E5", "E6", "E7", "E9", "W4", "W5"}) {
		t.Errorf("not checked: %v", got)
	}
	known := capabilities(t, `{"name":"mylib","measured":[{"max_bytes":1048576,"max_ranks":8}]}`)
	if got := codes(mix.Inspect(p, mix.CheckOptions{Capabilities: known})); !slices.Equal(got, []string{"E6", "E7", "E9", "W4"}) {
		t.Errorf("not checked with capabilities: %v", got)
	}
	environments(lives(p, "-0@1", "-0@1"), "a1")
	r := mix.Inspect(buffers(p, "1:2"), mix.CheckOptions{Capabilities: known})
	if got := codes(r); !slices.Equal(got, []string{"E6", "E9", "W4"}) || !strings.Contains(r.NotChecked[0].Why, "computation") || !strings.Contains(r.NotChecked[1].Why, "of rank 1") {
		t.Errorf("not checked of a plan that says all but one rank's environment: %+v", r.NotChecked)
	}
	communication(p, 0, 0).OutBuffer = 0
	if r := mix.Inspect(p, mix.CheckOptions{Capabilities: known}); !strings.Contains(r.NotChecked[0].Why, "1 communication of 2 without buffers") {
		t.Errorf("not checked of a plan with buffers of one rank: %+v", r.NotChecked)
	}
}

// TestTooLargeToLookForBuffers: a plan with more than that is still checked for the
// rest, and says so.
func TestTooLargeToLookForBuffers(t *testing.T) {
	p := buffers(write(t, both, "g0/0 g1/1", "g0/0 g1/1"), "7:8 7:7")
	if r := mix.Inspect(p, mix.CheckOptions{}); !r.Has("E6") {
		t.Fatalf("%v", r.Err())
	}
	program := p.Workload.Programs[0]
	program.Streams = append(program.Streams, make([]*planpb.Stream, 1<<14)...)
	for len(program.Tasks) < 1<<14 {
		program.Tasks = append(program.Tasks, &planpb.Task{Id: int32(len(program.Tasks)), Kind: &planpb.Task_Wait{Wait: &planpb.Wait{}}})
	}
	p.Workload.Programs[1].Tasks[1].GetCommunication().OutBuffer = 9
	r := mix.Inspect(p, mix.CheckOptions{})
	if r.Has("E6") || !slices.ContainsFunc(r.NotChecked, func(g mix.Gap) bool { return g.Code == "E6" && strings.Contains(g.Why, "rank 0 has too many") }) {
		t.Errorf("%v, not checked: %v", r.Err(), r.NotChecked)
	}
}

// TestSameReportEveryTime: nothing depends on the order of a map.
func TestSameReportEveryTime(t *testing.T) {
	p := write(t, ring, "g0@nccl/0 g2@nccl/1 g0@nccl/2 s1@nccl/3", "g0@nccl/0 g1@nccl/1 g0@nccl/0 r0@nccl/2", "g1@nccl/0 g2@nccl/1 c")
	first, _ := json.Marshal(mix.Inspect(p, mix.CheckOptions{}))
	for range 50 {
		if again, _ := json.Marshal(mix.Inspect(p, mix.CheckOptions{})); !bytes.Equal(first, again) {
			t.Fatalf("%s\nand then\n%s", first, again)
		}
	}
}
