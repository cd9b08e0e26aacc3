package trace

// Launches maps correlations to the API calls that launched device work.
//
// The first call of a process counts: ROCm may write one twice. A correlation
// that calls of several processes use joins nothing: the file is a merger of
// several ranks' traces, and the kernel could be any of theirs (TraceLens#577).
//
// Profilers number calls one after the other, so a slice does as a rule.
type Launches struct {
	first  int64           // correlation of dense[0]
	dense  []int32         // the event's index + 1, 0 where there is none
	sparse map[int64]int32 // instead of dense, where numbers are far apart
}

// several stands for an ambiguous correlation.
const several = -1

// Of returns the call with correlation c.
func (l *Launches) Of(c int64) (event int, ok bool) {
	n := l.at(c)
	return int(n) - 1, n > 0
}

func (l *Launches) at(c int64) int32 {
	if l.sparse != nil {
		return l.sparse[c]
	}
	if k := uint64(c) - uint64(l.first); k < uint64(len(l.dense)) {
		return l.dense[k]
	}
	return 0
}

func (l *Launches) set(c int64, n int32) {
	if l.sparse != nil {
		l.sparse[c] = n
		return
	}
	l.dense[c-l.first] = n
}

// maxSpread is how many correlations there may be for each call for a slice of
// them all.
const maxSpread = 16

// JoinLaunches joins the launches of a rank. It also returns the calls whose
// correlation is ambiguous.
func JoinLaunches(rank *Rank) (l *Launches, ambiguous []int) {
	ev := &rank.Events
	count, lowest, highest := int64(0), int64(0), int64(0)
	for i, c := range ev.Correlation {
		if ev.Category[i] != Runtime || c == NoID {
			continue
		}
		if count == 0 {
			lowest, highest = c, c
		}
		lowest, highest = min(lowest, c), max(highest, c)
		count++
	}
	l = &Launches{first: lowest}
	if spread := uint64(highest) - uint64(lowest); spread < uint64(maxSpread*count) {
		l.dense = make([]int32, spread+1)
	} else {
		l.sparse = make(map[int64]int32, count)
	}
	for i, c := range ev.Correlation {
		if ev.Category[i] != Runtime || c == NoID {
			continue
		}
		switch have := l.at(c); {
		case have == several:
			ambiguous = append(ambiguous, i)
		case have == 0:
			l.set(c, int32(i)+1)
		case rank.Threads[ev.Thread[have-1]].PID != rank.Threads[ev.Thread[i]].PID:
			l.set(c, several)
			ambiguous = append(ambiguous, int(have)-1, i)
		}
	}
	return l, ambiguous
}
