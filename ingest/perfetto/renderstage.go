package perfetto

import (
	"math"
	"strconv"

	"mixdown/ingest/trace"
)

// stage is what is read of a GpuRenderStageEvent.
type stage struct {
	gpu         int64
	duration    uint64
	name        trace.NameID
	kernel      trace.NameID
	spec        trace.NameID // the kind of stage
	queue       trace.NameID
	launch      []byte
	extra       [][]byte
	id, context uint64
	hasID       bool
}

// renderStage reads what a GPU did, with a duration of its own: PyTorch writes
// kernels and copies so. The process is the number of the GPU, the thread the
// name of its queue, the category the kind of stage. Its id, which the launching
// track event may refer to, and what the writer adds are the arguments.
func (r *Reader) renderStage(p *packet) bool {
	var g stage
	look := func(table map[uint64]trace.NameID, iid uint64) trace.NameID {
		if iid == 0 {
			return 0
		}
		return r.lookup(table, iid, p.at)
	}
	s := p.seq
	whole := fields(p.stage, func(x field) bool {
		switch x.num {
		case stageEventID:
			g.id, g.hasID = x.n, true
		case stageDuration:
			g.duration = x.n
		case stageContext:
			g.context = x.n
		case stageGPU:
			g.gpu = int64(int32(x.n))
		case stageQueueIID:
			g.queue = look(s.gpuSpecs, x.n)
		case stageIID:
			g.spec = look(s.gpuSpecs, x.n)
		case stageKernelIID:
			g.kernel = look(s.kernels, x.n)
		case stageNameIID:
			g.name = look(s.names, x.n)
		case stageName:
			g.name = r.text(x.data, p.at)
		case stageLaunch:
			g.launch = x.data
			return x.isBytes()
		case stageExtra:
			g.extra = append(g.extra, x.data)
			return x.isBytes()
		}
		return true
	})
	if !whole {
		return false
	}
	args, ok := r.stageArgs(&g, p)
	if !ok {
		return false
	}
	if len(r.events) >= r.opts.MaxEvents {
		r.stop(p.at, "more than %d track events", r.opts.MaxEvents)
		return true
	}
	h := held{kind: heldComplete, partner: -1, name: firstName(g.name, g.kernel, g.spec), cat: g.spec, offset: p.at, end: p.end}
	h.track = r.laneTrack(g.gpu, g.queue, p.at)
	r.setTime(&h, &trackEvent{}, p)
	if h.dur, h.hasDur = int64(g.duration), g.duration <= math.MaxInt64; !h.hasDur {
		h.dur = 0
		r.note(CodeTimeOverflow, p.at, "duration of %d ns", g.duration)
	}
	h.args = r.store(append(args, '}'), p.at)
	r.events = append(r.events, h)
	return true
}

func firstName(names ...trace.NameID) trace.NameID {
	for _, n := range names {
		if n != 0 {
			return n
		}
	}
	return 0
}

// stageArgs writes the arguments of a stage as an object without its end.
func (r *Reader) stageArgs(g *stage, p *packet) ([]byte, bool) {
	out := append(r.scratch[:0], `{"device": `...)
	out = strconv.AppendInt(out, g.gpu, 10)
	add := func(key []byte) { out = append(appendText(append(out, ", "...), key), ": "...) }
	if g.hasID {
		add([]byte("event_id"))
		out = strconv.AppendUint(out, g.id, 10)
	}
	if g.context != 0 {
		add([]byte("context"))
		out = strconv.AppendUint(out, g.context, 10)
	}
	for _, b := range g.extra {
		var key, text []byte
		if !fields(b, func(x field) bool {
			switch x.num {
			case extraName:
				key = x.data
			case extraValue:
				text = x.data
			}
			return true
		}) {
			return nil, false
		}
		add(key)
		out = appendText(out, text)
	}
	whole := fields(g.launch, func(x field) bool {
		switch x.num {
		case launchGrid, launchWorkgroup:
			add([]byte(map[bool]string{true: "grid", false: "block"}[x.num == launchGrid]))
			var ok bool
			out, ok = appendDim(out, x.data)
			return ok
		case launchArgs:
			key, value, ok := r.computeArg(x.data, p)
			if ok {
				add(key)
				out = append(out, value...)
			}
			return ok
		}
		return true
	})
	r.scratch = out
	return out, whole
}

// appendDim writes a Dim3 as PyTorch's JSON traces have it: [x, y, z].
func appendDim(out, b []byte) ([]byte, bool) {
	var d [3]uint64
	ok := fields(b, func(x field) bool {
		if x.num >= 1 && x.num <= 3 {
			d[x.num-1] = x.n
		}
		return true
	})
	out = append(out, '[')
	for i, n := range d {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = strconv.AppendUint(out, n, 10)
	}
	return append(out, ']'), ok
}

// computeArg reads an ExtraComputeArg: a name and a value as JSON.
func (r *Reader) computeArg(b []byte, p *packet) (key, value []byte, ok bool) {
	value = []byte("null")
	ok = fields(b, func(x field) bool {
		switch x.num {
		case argNameIID:
			key = []byte(r.names.Get(r.lookup(p.seq.argNames, x.n, p.at)))
		case argName:
			key = x.data
		case argInt:
			value = strconv.AppendInt(nil, int64(x.n), 10)
		case argUint:
			value = strconv.AppendUint(nil, x.n, 10)
		case argDouble:
			value = appendFloat(nil, math.Float64frombits(x.n))
		case argString:
			value = appendText(nil, x.data)
		}
		return true
	})
	return key, value, ok
}
