package diff_test

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
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"mixdown/analyze/align"
	"mixdown/analyze/collective"
	"mixdown/analyze/diff"
	"mixdown/ingest/comm"
	"mixdown/ingest/kineto/kinetotest"
	"mixdown/ingest/synthetic"
	"mixdown/ingest/trace"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func prepare(name string, run *trace.Run) diff.Input {
	in := diff.Input{Name: name, Run: run, Match: collective.Match(run)}
	in.Clocks = align.Estimate(run, in.Match)
	align.Apply(run, in.Clocks)
	align.UpdateArrivals(run, in.Match)
	return in
}

func testdata(t *testing.T, set string) diff.Input {
	t.Helper()
	run := kinetotest.Load(t, filepath.Join("../../testdata", set, "rank*.gz"))
	return prepare(set, run)
}

func made(t *testing.T, name string, opts synthetic.Options, change ...func(*trace.Run)) diff.Input {
	t.Helper()
	run, _, err := synthetic.Load(t.TempDir(), opts)
	if err != nil {
		t.Fatal(err)
	}
	markPhases(run)
	for _, c := range change {
		c(run)
	}
	return prepare(name, run)
}

// markPhases gives the synthetic run, whose traces mark none, phases: reductions
// are backward, the rest forward.
func markPhases(run *trace.Run) {
	for _, rank := range run.Ranks {
		for i := range rank.Operations {
			op := &rank.Operations[i]
			rank.Events.Phase[op.Event] = trace.Forward
			if op.Op.Reduces() {
				rank.Events.Phase[op.Event] = trace.Backward
			}
		}
	}
}

func compare(before, after diff.Input) *diff.Diff {
	return diff.Compare(diff.Summarize(before), diff.Summarize(after))
}

// usual is the run that changes are made to; its steps differ by some noise.
func usual() synthetic.Options {
	return synthetic.Options{Ranks: 4, Steps: 6, Noise: 0.01, Seed: 1, Collectives: []synthetic.Collective{
		{Op: comm.AllGather, Scope: synthetic.Tensor, Elements: 1 << 16},
		{Op: comm.ReduceScatter, Scope: synthetic.Tensor, Elements: 1 << 16},
		{Op: comm.AllReduce, Scope: synthetic.Data, Elements: 1 << 20},
		{Op: comm.AllReduce, Scope: synthetic.Data, Elements: 20_000},
		{Op: comm.AllToAll, Scope: synthetic.World, Elements: 1 << 15},
	}}
}

// slow makes operations that pick wants last longer: what comes later on the
// rank's device and in its program comes later by as much.
func slow(by int64, pick func(op *comm.Operation) bool) func(*trace.Run) {
	return func(run *trace.Run) {
		for _, rank := range run.Ranks {
			shift := func(after, by int64, self *comm.Operation) {
				ev := &rank.Events
				for i := range ev.TS {
					switch {
					case self != nil && i == self.Event:
					case ev.TS[i] >= after:
						ev.TS[i] += by
					case ev.End(i) >= after:
						ev.Dur[i] += by
					}
				}
				for i := range rank.Operations {
					op := &rank.Operations[i]
					for _, t := range []*int64{&op.Issued, &op.Returned, &op.Start, &op.End} {
						if op != self && *t >= after {
							*t += by
						}
					}
				}
				for i := range rank.Steps {
					s := &rank.Steps[i]
					if s.Start >= after {
						s.Start += by
					}
					if s.End >= after {
						s.End += by
					}
				}
			}
			for i := range rank.Operations {
				op := &rank.Operations[i]
				if !pick(op) {
					continue
				}
				shift(op.End, by, op)
				op.End += by
				rank.Events.Dur[op.Event] += by
			}
		}
	}
}

// standing lists the operations that stand out, "verdict op class phase group".
func standing(d *diff.Diff) []string {
	list := []string{}
	for _, o := range d.Operations {
		if o.Verdict != diff.Unchanged {
			phase := "-"
			if o.Phase != nil {
				phase = *o.Phase
			}
			size := int64(-1)
			if o.SizeFrom != nil {
				size = *o.SizeFrom
			}
			list = append(list, fmt.Sprintf("%s %s %d %s %s", o.Verdict, o.Op, size, phase, *o.Group))
		}
	}
	slices.Sort(list)
	return list
}

func text(t *testing.T, d *diff.Diff) string {
	t.Helper()
	var out bytes.Buffer
	if err := d.WriteText(&out, diff.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, l := range strings.Split(out.String(), "\n") {
		if utf8.RuneCountInString(l) > 100 {
			t.Errorf("wider than 100 columns: %q", l)
		}
	}
	return out.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got; -update rewrites it):\n%s", path, diff)
	}
}

// TestKnownChangesAreFoundAndNothingElse injects one change at a time.
func TestKnownChangesAreFoundAndNothingElse(t *testing.T) {
	big := func(op *comm.Operation) bool { return op.Op == comm.AllReduce && op.In == 1<<20 }
	for _, c := range []struct {
		name   string
		opts   func(*synthetic.Options)
		slow   func(*trace.Run)
		want   []string
		answer string
	}{
		{name: "nothing", want: []string{}, answer: "no difference in communication"},
		{
			name: "slower", slow: slow(300_000, big), want: []string{"grew all_reduce 4194304 backward mesh_dp"},
			answer: "because all_reduce 4..8 MiB in mesh_dp exposed +300.0 us in backward",
		},
		{
			name: "added", opts: func(o *synthetic.Options) {
				o.Collectives = append(o.Collectives, synthetic.Collective{Op: comm.Broadcast, Scope: synthetic.World, Elements: 1 << 22})
			},
			want: []string{"appeared broadcast 16777216 forward default_pg"}, answer: "because new broadcast 16..32 MiB in default_pg exposed",
		},
		{
			name: "removed", opts: func(o *synthetic.Options) { o.Collectives = o.Collectives[:4] },
			want: []string{"vanished all_to_all 131072 forward default_pg"},
		},
		{
			name: "other size", opts: func(o *synthetic.Options) { o.Collectives[3].Elements = 5_000_000 },
			want: []string{"appeared all_reduce 16777216 backward mesh_dp", "vanished all_reduce 65536 backward mesh_dp"},
		},
		{
			name: "twice", opts: func(o *synthetic.Options) { o.Collectives = append(o.Collectives, o.Collectives[1]) },
			want: []string{"grew reduce_scatter 524288 backward mesh_tp"},
		},
	} {
		after := usual()
		if c.opts != nil {
			c.opts(&after)
		}
		var change []func(*trace.Run)
		if c.slow != nil {
			change = append(change, c.slow)
		}
		d := compare(made(t, "old", usual()), made(t, "new", after, change...))
		if got := standing(d); !slices.Equal(got, c.want) {
			t.Errorf("%s: found\n%s\nwant\n%s\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"), text(t, d))
		}
		if !d.Comparable || d.Basis != diff.BySum || !strings.Contains(d.Answer, c.answer) {
			t.Errorf("%s: %s", c.name, d.Answer)
		}
		golden(t, strings.ReplaceAll(c.name, " ", "_")+".txt", text(t, d))
	}
}

// TestOtherSeedIsNoDifference: what is left of two runs of one program is noise.
func TestOtherSeedIsNoDifference(t *testing.T) {
	other := usual()
	other.Seed = 99
	d := compare(made(t, "old", usual()), made(t, "new", other))
	if got := standing(d); len(got) > 0 {
		t.Errorf("%v\n%s", got, text(t, d))
	}
}

func TestIdenticalRunsHaveNoDifference(t *testing.T) {
	for _, set := range []string{"dp_moe_4rank", "pipeline_1f1b_4rank", "deepspeed_zero2_2rank"} {
		d := compare(testdata(t, set), testdata(t, set))
		if len(standing(d)) > 0 || !d.Comparable || len(d.Operations) == 0 {
			t.Errorf("%s: %v", set, standing(d))
		}
		for _, o := range d.Operations {
			for _, m := range []diff.Metric{o.Count, o.Bytes, o.Total, o.Exposed, o.Wait, o.Transfer} {
				if m.Change != nil && *m.Change != 0 || m.P != nil && *m.P != 1 {
					t.Errorf("%s: %s %+v", set, o.Op, m)
				}
			}
		}
		if !strings.Contains(d.Answer, "(+0.0 %), and no difference in communication") {
			t.Errorf("%s: %s", set, d.Answer)
		}
		golden(t, set+".txt", text(t, d))
	}
}

func TestOtherWorldSizeIsComparedPerRank(t *testing.T) {
	exact := usual() // with noise, larger groups do wait longer
	exact.Noise, exact.EndSkewNs = 0, -1
	bigger := exact
	bigger.Ranks = 8
	d := compare(made(t, "4 ranks", exact), made(t, "8 ranks", bigger))
	if d.Basis != diff.ByRank || !hasNote(d, "world-size-differs") || !hasNote(d, "size-grows-with-group") {
		t.Errorf("basis %s, notes %+v", d.Basis, d.Notes)
	}
	if got := standing(d); len(got) > 0 {
		t.Errorf("%v\n%s", got, text(t, d))
	}
	for _, o := range d.Operations {
		if o.Count.Change != nil || *o.Count.PerRankChange != 0 || o.RanksBefore != 4 || o.RanksAfter != 8 {
			t.Errorf("%s: %+v", o.Op, o.Count)
		}
	}
	golden(t, "world_size.txt", text(t, d))
}

func TestFewStepsHaveNoP(t *testing.T) {
	few := usual()
	few.Steps = 3
	d := compare(made(t, "old", usual()), made(t, "new", few))
	if !hasNote(d, "not-enough-steps") || d.Time.Step.P != nil || d.Operations[0].Exposed.P != nil {
		t.Errorf("p %v, notes %+v", d.Time.Step.P, d.Notes)
	}
}

func TestClocksThatCannotBeComparedHaveNoWait(t *testing.T) {
	a, b := made(t, "old", usual()), made(t, "new", usual())
	b.Clocks.Connected = false
	d := compare(a, b)
	for _, o := range d.Operations {
		if o.Wait.Before == nil || o.Wait.After != nil || o.Wait.Change != nil || o.Transfer.After != nil || o.Exposed.Change == nil {
			t.Errorf("%s: %+v", o.Op, o.Wait)
		}
	}
	if !hasNote(d, "clocks-not-comparable") {
		t.Errorf("%+v", d.Notes)
	}
}

// TestWhatOneRunOnlyKnowsIsNoKey: without it everything would have vanished.
func TestWhatOneRunOnlyKnowsIsNoKey(t *testing.T) {
	unknown := func(run *trace.Run) {
		for _, rank := range run.Ranks {
			clear(rank.Events.Phase)
			for i := range rank.Operations {
				rank.Operations[i].SizeKnown = false
			}
		}
	}
	d := compare(made(t, "old", usual()), made(t, "new", usual(), unknown))
	if got := standing(d); len(got) > 0 || !slices.Equal(d.Keys, []string{"op", "group"}) || !hasNote(d, "key-unknown") {
		t.Errorf("%v, keys %v, notes %+v", got, d.Keys, d.Notes)
	}
}

func TestGroupsWithOtherNamesAreMatchedByTheirMembers(t *testing.T) {
	undescribed := func(run *trace.Run) {
		for _, rank := range run.Ranks {
			for i := range rank.Groups {
				rank.Groups[i].Description = "undefined"
			}
		}
	}
	d := compare(made(t, "old", usual()), made(t, "new", usual(), undescribed))
	if got := standing(d); len(got) > 0 || !hasNote(d, "groups-matched") {
		t.Errorf("%v, notes %+v", got, d.Notes)
	}
}

func TestGroupsKnownByMembersOnlyAreNotedInAnotherWorld(t *testing.T) {
	undescribed := func(run *trace.Run) {
		for _, rank := range run.Ranks {
			for i := range rank.Groups {
				rank.Groups[i].Description = ""
			}
		}
	}
	bigger := usual()
	bigger.Ranks = 8
	d := compare(made(t, "old", usual(), undescribed), made(t, "new", bigger, undescribed))
	if !hasNote(d, "groups-by-members") {
		t.Errorf("%+v", d.Notes)
	}
	for _, o := range d.Operations { // the group of all ranks is one in any world
		if (o.Verdict == diff.Appeared || o.Verdict == diff.Vanished) && *o.Group == "all ranks" {
			t.Errorf("%s %s in %s", o.Verdict, o.Op, *o.Group)
		}
	}
}

// TestBlockingOnOneSideOnlyIsSaid is DeepSpeed#4738.
func TestBlockingOnOneSideOnlyIsSaid(t *testing.T) {
	block := func(run *trace.Run) {
		for _, rank := range run.Ranks {
			name := rank.Names.InternString("cudaDeviceSynchronize")
			launches, _ := trace.JoinLaunches(rank)
			for i := range rank.Operations {
				if l, ok := launches.Of(rank.Events.Correlation[rank.Operations[i].Event]); ok {
					rank.Events.Append(trace.Row{
						Name: name, Category: trace.Runtime, Thread: rank.Events.Thread[l], TS: rank.Events.End(l), Dur: 100,
						Correlation: trace.NoID, Stream: trace.NoStream, Device: -1,
					})
				}
			}
		}
	}
	barriers := usual()
	for i := range barriers.Collectives {
		barriers.Collectives[i] = synthetic.Collective{Op: comm.Barrier, Scope: synthetic.World}
	}
	if d := diff.Summarize(made(t, "barriers", barriers, block)); d.Blocking != nil {
		t.Errorf("barriers are blocking anyway: %g", *d.Blocking)
	}
	a, b := made(t, "old", usual()), made(t, "new", usual(), block)
	if d := compare(a, b); !hasNote(d, "blocking-sync") {
		t.Errorf("before %v, after %v", *d.Before.Blocking, *d.After.Blocking)
	}
	if d := compare(b, b); hasNote(d, "blocking-sync") {
		t.Errorf("both are blocking: %+v", d.Notes)
	}
}

func TestNothingInCommon(t *testing.T) {
	other := usual()
	other.Collectives = []synthetic.Collective{{Op: comm.Broadcast, Scope: synthetic.World, Elements: 4}}
	silent := usual()
	silent.Collectives = []synthetic.Collective{}
	big := silent
	big.Ranks = 8
	noSteps := func(run *trace.Run) {
		for _, rank := range run.Ranks {
			rank.Steps = nil
		}
	}
	for _, c := range []struct {
		name       string
		after      diff.Input
		comparable bool
	}{
		{"other operations", made(t, "new", other), false},
		{"no communication", made(t, "new", silent), true},
		{"no communication on more ranks", made(t, "new", big), false},
		{"no communication, no steps", made(t, "new", silent, noSteps), false},
		{"no steps", made(t, "new", usual(), noSteps), true},
	} {
		d := compare(made(t, "old", usual()), c.after)
		if d.Comparable != c.comparable || !c.comparable && !strings.HasPrefix(d.Answer, "not comparable: ") {
			t.Errorf("%s: %v, %s", c.name, d.Comparable, d.Answer)
		}
		text(t, d)
	}
}

// TestJSON: what is unknown is null, lists are never null.
func TestJSON(t *testing.T) {
	d := compare(made(t, "old", usual()), made(t, "new", usual()))
	data, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"schema_version":1`, `"keys":["op","group","size","phase"]`, `"changed":[]`, `"ranks_missing":[]`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("lacks %s", want)
		}
	}
}

func hasNote(d *diff.Diff, code string) bool {
	return slices.ContainsFunc(d.Notes, func(n diff.Note) bool { return n.Code == code })
}
