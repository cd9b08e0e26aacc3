package kineto

import "mixdown/ingest/trace"

// launchesOf maps correlations to the API calls that launched device work.
//
// The first call of a process counts: ROCm may write one twice. A correlation
// that calls of several processes use joins nothing: the file is a merger of
// several ranks' traces, and the kernel could be any of theirs (TraceLens#577).
func launchesOf(rank *trace.Rank) map[int64]int {
	launches, _ := joinLaunches(rank)
	return launches
}

// joinLaunches also returns the calls whose correlation is ambiguous.
func joinLaunches(rank *trace.Rank) (launches map[int64]int, ambiguous []int) {
	ev := &rank.Events
	launches = map[int64]int{}
	taken := map[int64]bool{}
	for i := range ev.Len() {
		c := ev.Correlation[i]
		if ev.Category[i] != trace.Runtime || c == trace.NoID {
			continue
		}
		first, dup := launches[c]
		switch {
		case taken[c]:
			ambiguous = append(ambiguous, i)
		case !dup:
			launches[c] = i
		case rank.Threads[ev.Thread[first]].PID != rank.Threads[ev.Thread[i]].PID:
			delete(launches, c)
			taken[c] = true
			ambiguous = append(ambiguous, first, i)
		}
	}
	return launches, ambiguous
}
