package schedule

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"mixdown/cmd/mixdown/cli"
	"mixdown/replay/schedule"
)

// run runs the command with buffers for streams.
func run(args ...string) (string, error) {
	var out bytes.Buffer
	cmd := NewCmd(&cli.Streams{Out: &out, Err: &out}, nil)
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(context.Background())
	return out.String(), err
}

func TestFlags(t *testing.T) {
	var got Options
	cmd := NewCmd(&cli.Streams{}, func(_ context.Context, opts *Options) error {
		got = *opts
		return nil
	})
	cmd.SetArgs([]string{"gpipe", "--comms", "--sharding", "full", "--weight-buffers=2", "--params", "52B", "--svg", "a.svg"})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	if got.Spec != "gpipe" || got.Comms != commsPlain || got.Sharding != "full" || got.WeightBuffers != 2 || got.GradientBuffers != 1 || got.Sizes.Parameters != "52B" || got.SVG != "a.svg" {
		t.Errorf("got %+v", got)
	}
}

// TestOther: what the other spec leaves open is as in the first, for the same
// model.
func TestOther(t *testing.T) {
	for _, c := range []struct{ spec, against, want string }{
		{"breadth-first:ranks=4,microbatches=8,loops=4", "depth-first", "depth-first:ranks=4,microbatches=8,loops=4"},
		{"breadth-first:ranks=4,microbatches=8,loops=4,hop=1/2", "depth-first:loops=2", "depth-first:ranks=4,microbatches=8,loops=2,forward=2,backward=4,hop=1/2"},
		{"1f1b:ranks=4,microbatches=8", "dualpipe", "dualpipe:ranks=4,microbatches=8,loops=2"},
		{"1f1b:ranks=4,microbatches=8", "zbv", "zbv:ranks=4,microbatches=8,loops=2,forward=1/2,backward=1"},
		{"1f1b:ranks=4,microbatches=8", "zbv:forward=3,hop=1", "zbv:ranks=4,microbatches=8,loops=2,forward=3,hop=1"},
	} {
		opts := Options{Spec: c.spec, Against: c.against}
		q, err := opts.question()
		if err != nil {
			t.Fatal(err)
		}
		if got := q.against.spec.String(); got != c.want {
			t.Errorf("%s against %s: %s, want %s", c.spec, c.against, got, c.want)
		}
	}
}

func TestErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"unknown name":                  {"zigzag"},
		"unknown unit":                  {"gpipe:ranks=2,microbatches=2", "--params", "3Q"},
		"expected a number of ranks":    {"gpipe:ranks=2,microbatches=2", "--data-parallel=-1"},
		"a negative number of buffers":  {"gpipe:ranks=2,microbatches=2", "--sharding=full", "--weight-buffers=-1"},
		"known are text, json":          {"gpipe:ranks=2,microbatches=2", "--format=xml"},
		"activation bytes: 10000000000": {"gpipe:ranks=2,microbatches=2", "--activation-bytes=10000000000000"},
	} {
		out, err := run(args...)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, cli.ErrUsage) && !errors.Is(err, schedule.ErrSpec) {
			t.Errorf("%v: got %v %s, want ...%s...", args, err, out, want)
		}
	}
}
