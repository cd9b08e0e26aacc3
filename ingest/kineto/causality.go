package kineto

import (
	"fmt"
	"strings"

	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// Fix is what to do with device events that start before their own launch: the
// profiler's conversion of device time to host time can be off by seconds
// (pytorch#192021).
type Fix string

// None reports them and changes nothing; Drop leaves them out; Clamp moves their
// start to the launch, and their end with it where it would lie before.
const (
	FixNone  Fix = "none"
	FixDrop  Fix = "drop"
	FixClamp Fix = "clamp"
)

// ParseFix reads the name of a fix; "" is none.
func ParseFix(name string) (Fix, error) {
	switch f := Fix(name); f {
	case "":
		return FixNone, nil
	case FixNone, FixDrop, FixClamp:
		return f, nil
	}
	return "", fmt.Errorf("unknown fix %q: known are none, drop, clamp", name)
}

// clockSlack is how much earlier than its launch a device event may seem to
// start, in ns, before it counts as a fault: clocks are converted, and older
// profilers round to whole microseconds.
const clockSlack = 5_000

// checkCausality counts device events that start before their launch began and
// fixes them as asked.
func checkCausality(rd *reading, fix Fix) {
	rank := rd.rank
	ev := &rank.Events
	launches, ambiguous := trace.JoinLaunches(rank)
	rd.launches = launches
	for _, i := range ambiguous {
		rd.diags.Addf("ambiguous-correlation", diagnostic.NoRank, ev.Offset[i],
			"calls of several processes have correlation %d: a merged trace of several ranks; its kernels are joined to none of them", ev.Correlation[i])
	}
	var worst int64
	var count, first int64
	example := ""
	for i := range ev.Len() {
		if !ev.Category[i].OnDevice() {
			continue
		}
		l, ok := launches.Of(ev.Correlation[i])
		if !ok || ev.TS[i] >= ev.TS[l]-clockSlack {
			continue
		}
		early := ev.TS[l] - ev.TS[i]
		if count == 0 {
			first, example = ev.Offset[i], rank.Name(i)
		}
		count++
		worst = max(worst, early)
		switch fix {
		case FixDrop:
			ev.Category[i] = trace.Other
		case FixClamp:
			end := max(ev.End(i), ev.TS[l])
			ev.TS[i], ev.Dur[i] = ev.TS[l], end-ev.TS[l]
		}
	}
	countLostKernels(rd, launches)
	if count > 0 {
		rd.diags.Add(diagnostic.Diagnostic{
			Code: "kernel-before-launch", Rank: diagnostic.NoRank, Count: count, Offset: first,
			Example: fmt.Sprintf("%q starts before it was launched; the worst such event is %.3f ms early (fix: %s)", example, float64(worst)/1e6, fix),
		})
	}
}

// countLostKernels counts launches whose kernel is not in the trace: it ran after
// the window, or the profiler lost it (rocprofiler#152).
func countLostKernels(rd *reading, launches *trace.Launches) {
	rank := rd.rank
	if rank.CPUOnly {
		return
	}
	ev := &rank.Events
	found := make([]bool, ev.Len()) // work of the launch
	loose := map[int64]bool{}       // correlations of work that is joined to none
	for i := range ev.Len() {
		if !ev.Category[i].OnDevice() {
			continue
		}
		if l, ok := launches.Of(ev.Correlation[i]); ok {
			found[l] = true
		} else {
			loose[ev.Correlation[i]] = true
		}
	}
	isLaunch := map[trace.NameID]bool{} // names repeat
	for i := range ev.Len() {
		if ev.Category[i] != trace.Runtime || ev.Correlation[i] == trace.NoID {
			continue
		}
		if l, ok := launches.Of(ev.Correlation[i]); ok && found[l] || !ok && loose[ev.Correlation[i]] {
			continue
		}
		launch, known := isLaunch[ev.Name[i]]
		if !known {
			launch = strings.Contains(rank.Name(i), "Launch")
			isLaunch[ev.Name[i]] = launch
		}
		if launch {
			rd.diags.Addf("launch-without-kernel", diagnostic.NoRank, ev.Offset[i],
				"%s launched a kernel that is not in the trace: it ran later, or the profiler lost it", rank.Name(i))
		}
	}
}
