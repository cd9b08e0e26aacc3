package chrome

import "bytes"

// Metadata is what the file says besides its events: the members of the
// top-level object, in file order, duplicates included.
type Metadata struct {
	entries []entry
	index   map[string][]int // entries of each key
	bytes   int              // memory that the entries take
}

type entry struct {
	key    string
	value  Value
	offset int64 // of the value
	kept   bool  // false when the value was too large to keep
}

// maxCompared is how many values of one key are compared with the first:
// hostile files could make that long work.
const maxCompared = 64

// entryOverhead is what an entry costs besides key and value, roughly.
const entryOverhead = 96

// Keys returns the keys in order of first appearance, each once.
func (m *Metadata) Keys() []string {
	var keys []string
	for i, e := range m.entries {
		if m.index[e.key][0] == i {
			keys = append(keys, e.key)
		}
	}
	return keys
}

// All returns every value of key in file order.
func (m *Metadata) All(key string) []Value {
	var all []Value
	for _, i := range m.index[key] {
		if e := m.entries[i]; e.kept {
			all = append(all, e.value)
		}
	}
	return all
}

// Get returns the value of key. When the file has the key several times,
// objects are merged: the fullest one, plus what only the others have. Of
// other values the first that is not null is taken. It reports false when the
// key is absent or its value was too large to keep.
func (m *Metadata) Get(key string) (Value, bool) {
	all := m.All(key)
	if len(all) == 0 {
		return Value{}, false
	}
	best := all[0]
	for _, v := range all[1:] {
		if fuller(v, best) {
			best = v
		}
	}
	if best.kind != Object || len(all) == 1 {
		return best, true
	}
	return merge(best, all), true
}

// fuller tells whether v says more than old, which came earlier.
func fuller(v, old Value) bool {
	if old.kind == Null || old.kind == Invalid {
		return v.kind != Null && v.kind != Invalid
	}
	return v.kind == old.kind && (v.kind == Object || v.kind == Array) && v.Len() > old.Len()
}

// merge returns base with the members that only others have.
func merge(base Value, others []Value) Value {
	out := []byte{'{'}
	seen := make(map[string]bool)
	for _, o := range append([]Value{base}, others...) {
		o.Fields(func(key []byte, v Value) bool {
			if !seen[string(key)] {
				seen[string(key)] = true
				out = appendMember(out, key, v)
			}
			return true
		})
	}
	return Value{append(out, '}'), Object}
}

// conflicts tells whether a and b, two values of one key, contradict each
// other rather than complete each other.
func conflicts(a, b Value) bool {
	if a.kind == Null || b.kind == Null || bytes.Equal(a.raw, b.raw) {
		return false
	}
	if a.kind != Object || b.kind != Object {
		return true
	}
	members := make(map[string]Value)
	a.Fields(func(key []byte, v Value) bool {
		members[string(key)] = v
		return true
	})
	found := false
	b.Fields(func(key []byte, v Value) bool {
		w, ok := members[string(key)]
		found = ok && conflicts(w, v)
		return !found
	})
	return found
}

// metadata reads the value of a top-level key that is not an event array. It
// passes through the window token by token, so its size does not matter; it
// is kept as long as the budget lasts.
func (r *Reader) metadata(key string) {
	m := &r.meta
	cost := len(key) + entryOverhead
	keep := m.bytes+cost <= r.opts.MaxMetadataBytes
	at := r.offset()
	var raw []byte
	w := &r.p.walk
	w.begin(r.opts.MaxDepth)
	for {
		b, from := r.rest(), r.offset()
		r.p.flt.reset()
		next, status := w.walk(b, 0, &r.p.flt)
		r.commitPlain(&r.p.flt, from)
		b = r.rest()
		if keep {
			if m.bytes+cost+len(raw)+next > r.opts.MaxMetadataBytes {
				keep, raw = false, nil
			} else {
				raw = append(raw, b[:next]...)
			}
		}
		r.pos += next
		switch {
		case status == 0:
			r.addMetadata(key, raw, at, keep, cost)
			return
		case status == needMore && r.more():
			continue
		case status == needMore && !r.full:
			r.pos = r.end
			return // the file ends here, as Next will find
		case status == tooDeep:
			r.note(cTooDeep)
		}
		r.note(cBrokenMetadata)
		if status == needMore {
			r.pos = r.end
		}
		r.resync(seekKey)
		return
	}
}

// commitPlain turns the faults found in the bytes from the current position on
// into diagnostics. Their examples begin at the fault, because what stands
// before it may have left the window.
func (r *Reader) commitPlain(f *faults, from int64) {
	if !f.any {
		return
	}
	for c, n := range f.n {
		if n > 0 {
			r.ensure(f.at[c] + exampleBytes)
			b := r.rest()
			r.diags.add(codeID(c), n, from+int64(f.at[c]), excerpt(b[min(f.at[c], len(b)):], 0))
		}
	}
}

func (r *Reader) addMetadata(key string, raw []byte, at int64, keep bool, cost int) {
	m := &r.meta
	if !keep {
		r.diags.add(cMetadataTooLarge, 1, at, []byte(key))
		if m.bytes+cost > r.opts.MaxMetadataBytes {
			return // not even the key
		}
	}
	v := ParseValue(raw)
	if same := m.index[key]; len(same) > 0 {
		r.diags.add(cDuplicateMetadata, 1, at, []byte(key))
		if first := m.entries[same[0]]; first.kept && keep && len(same) < maxCompared && conflicts(first.value, v) {
			r.diags.add(cConflictMetadata, 1, at, []byte(key))
		}
	}
	if m.index == nil {
		m.index = make(map[string][]int)
	}
	m.index[key] = append(m.index[key], len(m.entries))
	m.bytes += cost + len(raw)
	m.entries = append(m.entries, entry{key: key, value: v, offset: at, kept: keep})
}

// has tells whether the file has the key so far.
func (m *Metadata) has(key string) bool { return len(m.index[key]) > 0 }
