package launch

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestAccount: what each rank is in, and whom it waits for, from the control file
// of a run that hangs: rank 0 is in all_reduce 3, rank 1 still in number 2, rank 2
// between the two; rank 0's message has been sent, rank 2 has not asked for it.
func TestAccount(t *testing.T) {
	c, err := newControl(filepath.Join(t.TempDir(), "control"), 3)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	r := &running{exp: endless("gloo"), crew: &local{control: c}, gone: -1}
	set := func(worker int, state State, iteration uint32) {
		at := headerSize + worker*slotSize
		*c.word(at + 8), *c.word(at + 12), *c.word(at + 20) = uint32(state), 2, iteration
	}
	stream := func(worker, k int, task int32, doing uint32, since int64) {
		at := headerSize + worker*slotSize + streamsOffset + k*streamSize
		*c.word(at), *c.word(at + 4), *c.long(at + 8) = uint32(task), doing, uint64(since)
	}
	*c.long(startOffset) = 1000
	for worker := range 3 {
		set(worker, Timing, 7)
		stream(worker, 1, -1, StreamIdle, 0)
	}
	stream(0, 0, 3, StreamCommunicates, 2000)
	stream(1, 0, 2, StreamCommunicates, 2000)
	stream(2, 0, 3, StreamWaitsForTurn, 2000)
	stream(0, 1, 5, StreamCommunicates, 2000)
	for _, step := range []struct {
		name   string
		change func()
		rank   int
		want   []string
	}{
		{"others have not begun", func() {}, 0, []string{
			`plan "endless", iteration 7`,
			`collectives is in all_reduce 3 of group "data" on gloo (1024 bytes) since `, " s, waiting for ranks 1, 2;",
			`messages is in send to rank 2 on gloo (group "pair", 256 bytes) since `, " s, waiting for rank 2"}},
		{"others have ended", func() {}, 1, []string{"all_reduce 2 of group", " s, which has ended on ranks 0, 2"}},
		{"its turn has not come", func() {}, 2, []string{"collectives waits for its turn on the communicator for all_reduce 3"}},
		{"the message has arrived", func() { stream(2, 1, -1, StreamIdle, 1500) }, 0, []string{" s, which has ended on rank 2"}},
		{"all are in it", func() {
			stream(1, 0, 3, StreamCommunicates, 2000)
			stream(2, 0, 3, StreamCommunicates, 2000)
		}, 0, []string{" s, as are all others that take part"}},
		{"one is an iteration ahead", func() { set(1, Timing, 8) }, 0, []string{" s, which has ended on rank 1"}},
		{"one has not connected", func() { set(2, Connecting, 0) }, 0, []string{" s, waiting for rank 2;"}},
	} {
		step.change()
		statuses := r.statuses()
		got := r.account(step.rank, statuses[step.rank], statuses)
		for _, want := range step.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not in\n%s", step.name, want, got)
			}
		}
	}
}
