package plan

import (
	"cmp"
	"slices"
)

// kernelRun is a run of kernels on one stream that is replayed as one or two
// spans.
//
// A kernel ends at E[k] = max(E[k-1], launch[k], its dependencies) + own[k],
// where own is its duration with the gap before it that none of these explains.
// Within a run only the first has dependencies and the host's launches keep
// their distances, so the end of the last is
//
//	max( ready of the first + sum of own, launch[c] + own[c] + ... + own[last] )
//
// for the one launch c for which the second term is largest. Two spans, the
// second starting no earlier than launch c, end at exactly this time, whatever
// becomes of the first's dependencies.
//
// A kernel that finds its stream idle starts some microseconds after its launch;
// one that is queued does not need them. So own has them (up to what is usual on
// the rank) for the first kernel and for launch c alone: where the host is ahead,
// because communication held up the device, kernels follow each other closely. The
// two spans may then end that much too late, once a run.
type kernelRun struct {
	items    []*item
	total    int64 // ns, sum of own
	critical int   // index of the launch c, 0 when the first launch decides
	tail     int64 // ns, own from the critical item on
	lead     int64 // ns, communication: from when it could start to its start

	kernels, tailKernels int64 // ns, of total and of tail: time in which kernels compute
}

// runs cuts the streams into runs, by launch. A run ends after an item that
// something depends on, before one that depends on another stream, where the
// host blocks between two launches, and around communication.
func (d *deviceRank) runs() []kernelRun {
	var all []kernelRun
	for _, l := range d.lines {
		var current []*item
		flush := func() {
			if len(current) > 0 {
				all = append(all, d.makeRun(l, current))
				current = nil
			}
		}
		for _, it := range l.items {
			if len(current) > 0 {
				last := current[len(current)-1]
				if it.operation >= 0 || last.operation >= 0 || last.referenced || len(it.deps) > 0 ||
					it.hostSegment != last.hostSegment || it.launched != last.launched || it.issued() < last.issued() {
					flush()
				}
			}
			current = append(current, it)
		}
		flush()
	}
	slices.SortStableFunc(all, func(a, b kernelRun) int {
		return cmp.Or(
			cmp.Compare(a.items[0].issued(), b.items[0].issued()),
			cmp.Compare(a.items[0].start, b.items[0].start),
			cmp.Compare(a.items[0].stream, b.items[0].stream),
		)
	})
	return all
}

// makeRun computes the run's lengths from the trace.
func (d *deviceRank) makeRun(l *line, items []*item) kernelRun {
	run := kernelRun{items: items}
	previous := d.win.start // a stream without launches is idle from the start of the step
	if k := items[0].position; k > 0 {
		previous = l.items[k-1].end
	}
	own := make([]int64, len(items))
	kernels := make([]int64, len(items))
	lag := make([]int64, len(items)) // from the launch to when the kernel could start, not in own
	for k, it := range items {
		ready := previous
		if it.launched {
			ready = max(ready, it.launch)
			if k == 0 && it.position == 0 {
				ready = it.launch
			}
		}
		for _, dep := range it.deps {
			ready = max(ready, dep.end)
		}
		run.lead = max(it.start-ready, 0)
		own[k] = max(it.end-max(ready, it.start), 0) + run.lead
		if k > 0 && it.launched {
			lag[k] = min(it.start-it.launch, d.latency)
			own[k] -= min(run.lead, max(it.launch+lag[k]-ready, 0))
		}
		run.total += own[k]
		if it.computes {
			kernels[k] = min(max(it.end-max(ready, it.start), 0), own[k])
			run.kernels += kernels[k]
		}
		previous = max(previous, it.end)
	}
	if !items[0].launched {
		return run
	}
	tail, tailKernels := int64(0), int64(0)
	best := items[0].launch + run.total
	run.tail, run.tailKernels = run.total, run.kernels
	for k := len(items) - 1; k > 0; k-- {
		tail += own[k]
		tailKernels += kernels[k]
		if at := items[k].launch + lag[k] + tail; at > best {
			best, run.critical, run.tail, run.tailKernels = at, k, lag[k]+tail, tailKernels
		}
	}
	run.total += lag[run.critical]
	return run
}

// launchLatency is what usually passes, in ns, from a launch to the start of a
// kernel whose stream is idle: what a tenth of them does not exceed.
func (d *deviceRank) launchLatency() int64 {
	var took []int64
	for _, l := range d.lines {
		for k, it := range l.items {
			if it.operation < 0 && it.launched && (k == 0 || l.items[k-1].end <= it.launch) {
				took = append(took, it.start-it.launch)
			}
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return took[len(took)/10]
}
