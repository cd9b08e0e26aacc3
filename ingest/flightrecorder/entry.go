package flightrecorder

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"mixdown/ingest/comm"
)

// filler makes a Dump of plain values. A pickle may refer to one list a million
// times, so what is copied out of the values is counted, too.
type filler struct {
	dump *Dump
	room int // values that may still be copied

	groups map[groupKey]int
	byName map[string][]int
	byID   map[int64]int
}

type groupKey struct {
	id   Int
	name string
}

func newFiller(d *Dump, opts Options) *filler {
	return &filler{dump: d, room: opts.MaxObjects, groups: map[groupKey]int{}, byName: map[string][]int{}, byID: map[int64]int{}}
}

// spent is the error of having copied too much.
func (r *filler) spent() error {
	if r.room >= 0 {
		return nil
	}
	return fmt.Errorf("%w: too many values are referred to again and again", ErrLimit)
}

// entries reads the list of entries.
func (r *filler) entries(v value, opts Options) error {
	d := r.dump
	items, ok := elements(v)
	if !ok {
		if v != nil {
			d.badField("entries", v)
		}
		return nil
	}
	if len(items) > opts.MaxEntries {
		return fmt.Errorf("%w: %d entries", ErrLimit, len(items))
	}
	for i, item := range items {
		m, ok := item.(*dict)
		if !ok {
			d.note(CodeBadEntry, "entry %d is %s", i, kindOf(item))
			continue
		}
		if d.Truncated && i == len(items)-1 && i > 0 && len(m.pairs) < requiredFields(items[0]) {
			break // cut in the middle
		}
		e, ok := r.entry(m)
		if !ok {
			d.note(CodeBadEntry, "entry %d has no profiling_name", i)
			continue
		}
		if err := r.spent(); err != nil {
			return err
		}
		d.Entries = append(d.Entries, e)
	}
	return nil
}

// requiredFields is how many fields every whole entry has.
func requiredFields(first value) int {
	m, ok := first.(*dict)
	if !ok {
		return 0
	}
	n := len(m.pairs)
	if m.get("duration_ms") != nil {
		n--
	}
	return n
}

func (r *filler) entry(m *dict) (e Entry, ok bool) {
	d := r.dump
	e.Name, _ = m.get("profiling_name").(string)
	if e.Name == "" {
		return e, false
	}
	e.RecordID = d.int(m, "record_id")
	e.PGID = d.int(m, "pg_id")
	e.CollectiveSeq = d.int(m, "collective_seq_id")
	e.P2PSeq = d.int(m, "p2p_seq_id")
	if m.get("collective_seq_id") == nil && m.get("p2p_seq_id") == nil {
		e.CollectiveSeq = d.int(m, "seq_id") // older dumps have one number for both
	}
	e.OpID = d.int(m, "op_id")
	e.IsP2P = d.bool(m, "is_p2p")
	e.Retired = d.bool(m, "retired")
	e.State = State(d.text(m, "state"))
	switch e.State {
	case Scheduled, Started, Completed, "":
	default:
		d.note(CodeUnknownState, "%.40q", string(e.State))
	}
	e.Created = d.int(m, "time_created_ns")
	e.Started = r.discovered(m, "time_discovered_started_ns")
	e.Completed = r.discovered(m, "time_discovered_completed_ns")
	e.Duration = r.millis(m, "duration_ms")
	e.Timeout = r.millis(m, "timeout_ms")
	e.ThreadName = d.text(m, "thread_name")
	e.ThreadID = d.text(m, "thread_id")
	if m.get("is_p2p") == nil { // older dumps do not say
		op, _ := comm.ParseOp(e.Name)
		e.IsP2P = op.IsP2P() && op != comm.Batch
	}
	r.name(&e)
	r.sizes(m, &e)
	e.Frames = r.frames(m.get("frames"))
	e.Group = r.group(m.get("process_group"), e.PGID)
	return e, true
}

// discovered reads a time that JSON writes as 0 and pickles as None when there
// is none.
func (r *filler) discovered(m *dict, key string) Int {
	if n := r.dump.int(m, key); n.V != 0 {
		return n
	}
	return Int{}
}

// millis reads milliseconds as ns.
func (r *filler) millis(m *dict, key string) Int {
	v := m.get(key)
	if v == nil {
		return Int{}
	}
	ms, ok := floatOf(v)
	ns := math.Round(ms * 1e6)
	if !ok || !(ns >= 0 && ns < 1<<63) {
		r.dump.badField(key, v)
		return Int{}
	}
	return known(int64(ns))
}

// spellings are names of operations that only flight recorders have: those of
// coalesced collectives and of torchcomms.
var spellings = map[string]comm.Op{
	"reduce_scatter_coalesced": comm.ReduceScatter,
	"all_gather_single":        comm.AllGather,
	"reduce_scatter_single":    comm.ReduceScatter,
	"all_to_all_v_single":      comm.AllToAllV,
}

// name reads a profiling name: "nccl:all_reduce", "nccl:send 1->2",
// "nccl:recv 2<-1", "nccl:coalesced".
func (r *filler) name(e *Entry) {
	rest := e.Name
	if i := strings.IndexByte(rest, ':'); i >= 0 {
		e.Backend, rest = rest[:i], rest[i+1:]
	}
	title, peers, _ := strings.Cut(rest, " ")
	op, ok := spellings[strings.ToLower(title)]
	if !ok {
		op, ok = comm.ParseOp(title)
	}
	if !ok {
		op = comm.Unknown
		r.dump.note(CodeUnknownOp, "%.80q", e.Name)
	}
	e.Op = op
	if src, dst, ok := strings.Cut(peers, "->"); ok {
		e.Src, e.Dst = groupRank(src), groupRank(dst)
	} else if dst, src, ok := strings.Cut(peers, "<-"); ok {
		e.Src, e.Dst = groupRank(src), groupRank(dst)
	}
}

func groupRank(s string) Int {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 { // -1 receives from any
		return Int{}
	}
	return known(n)
}

func (r *filler) sizes(m *dict, e *Entry) {
	var okIn, okOut bool
	e.Inputs, okIn = r.tensors(m, "input_sizes", "input_dtypes")
	e.Outputs, okOut = r.tensors(m, "output_sizes", "output_dtypes")
	e.SizesKnown = okIn && okOut
}

// tensors reads the shapes of a list of tensors.
func (r *filler) tensors(m *dict, sizesKey, typesKey string) ([]Tensor, bool) {
	shapes, ok := elements(m.get(sizesKey))
	if !ok {
		if v := m.get(sizesKey); v != nil {
			r.dump.badField(sizesKey, v)
		}
		return nil, false
	}
	types, _ := elements(m.get(typesKey))
	var tensors []Tensor
	for i, shape := range shapes {
		dims, ok := elements(shape)
		r.room -= 1 + len(dims)
		if !ok || r.room < 0 {
			r.dump.badField(sizesKey, shape)
			return nil, false
		}
		t := Tensor{Sizes: make([]int64, 0, len(dims))}
		for _, dim := range dims {
			n, ok := intOf(dim)
			if !ok || n < 0 {
				r.dump.badField(sizesKey, dim)
				return nil, false
			}
			t.Sizes = append(t.Sizes, n)
		}
		if i < len(types) {
			t.TypeName, _ = types[i].(string)
			t.DType, _ = comm.ParseDType(t.TypeName)
		}
		tensors = append(tensors, t)
	}
	return tensors, true
}

func (r *filler) frames(v value) []Frame {
	items, _ := elements(v)
	r.room -= len(items)
	if len(items) == 0 || r.room < 0 {
		return nil
	}
	frames := make([]Frame, 0, len(items))
	for _, item := range items {
		m, ok := item.(*dict)
		if !ok {
			r.dump.badField("frames", item)
			continue
		}
		frames = append(frames, Frame{Name: r.dump.text(m, "name"), File: r.dump.text(m, "filename"), Line: r.dump.int(m, "line").V})
	}
	return frames
}
