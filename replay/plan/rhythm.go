package plan

import "mixdown/replay/plan/planpb"

// Gaps says of every communication of a program how long its rank does not
// communicate before it, in ns: from the end of what it last communicated to the
// start of this, if communication took no time. By task; 0 for other tasks.
func Gaps(p *planpb.Program) []int64 {
	gaps := make([]int64, len(p.Tasks))
	ends := make([]int64, len(p.Tasks))
	streams := make([]int64, len(p.Streams)) // when each is free
	last := int64(0)
	for i, t := range p.Tasks {
		start := p.StartOffsetNs
		if s := int(t.Stream); s < len(streams) {
			start = max(start, streams[s])
		}
		for _, d := range t.Deps {
			if d >= 0 && int(d) < i {
				start = max(start, ends[d])
			}
		}
		ends[i] = start + t.GetSpan().GetDurationNs()
		if s := int(t.Stream); s < len(streams) {
			streams[s] = ends[i]
		}
		if t.GetCommunication() != nil {
			gaps[i] = max(0, start-last)
			last = max(last, start)
		}
	}
	return gaps
}
