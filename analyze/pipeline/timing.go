package pipeline

// work is a task on its way: where in the program it was run, and what it took
// from and gave to other ranks.
type work struct {
	key
	window       span // of the program: the label, or what stands between two messages
	exact        bool // window is the work itself, nothing to be cut off
	recvs, sends []part
	time         span // of the work, once known
}

// measure finds when the work of w itself ran. It reports false where the trace
// has nothing of it.
func (v *view) measure(w *work) bool {
	switch {
	case !v.rank.CPUOnly:
		return v.measureDevice(w)
	case w.exact:
		w.time = w.window
	default:
		v.measureHost(w)
	}
	return w.time.end > w.time.start
}

// measureDevice: on a device the work is what the program launched, from its first
// kernel to its last. A kernel that ended before the input was there prepared
// something else.
func (v *view) measureDevice(w *work) bool {
	var input int64
	for _, p := range w.recvs {
		input = max(input, v.rank.Operations[p.operation].End)
	}
	found := false
	for _, k := range v.launchedIn(w.window) {
		if k.end <= input {
			continue
		}
		if !found {
			w.time, found = k.span, true
		}
		w.time.start, w.time.end = min(w.time.start, k.start), max(w.time.end, k.end)
	}
	return found
}

// measureHost cuts off what the label holds beside the work: PyTorch waits for
// the input in the beginning of a task's label, and GPipe receives there and
// sends in its end.
func (v *view) measureHost(w *work) {
	w.time = w.window
	operators := v.during(w.window)
	first := w.window.end
	for _, o := range operators {
		if !o.buffer {
			first = o.start
			break
		}
	}
	for _, wait := range v.waits { // few overlap; the list is short beside the events
		if w.window.holds(wait.End) && wait.Start < first {
			w.time.start = max(w.time.start, wait.End)
		}
	}
	for _, p := range w.recvs {
		if w.window.holds(p.done) && p.done <= first {
			w.time.start = max(w.time.start, p.done)
		}
	}
	for _, p := range v.calledIn(w.window) {
		if p.call < first {
			if p.call >= w.time.start { // a receive that was done at once
				w.time.start = max(w.time.start, p.returned)
			}
			continue
		}
		end := w.time.start
		for _, o := range operators {
			if o.end <= p.call {
				end = max(end, o.end)
			}
		}
		w.time.end = min(w.time.end, end)
		break
	}
}
