package kineto

import (
	"hash/maphash"
	"strings"
	"sync"

	"mixdown/ingest/chrome"
	"mixdown/ingest/trace"
)

// tables give numbers to the names and threads of a file while several
// goroutines read it. The numbers depend on who comes first.
type tables struct {
	mu      sync.Mutex
	seed    maphash.Seed
	nameIDs map[string]uint32
	names   []string // by number
	threads map[threadKey]uint32
	keys    []threadKey // by number
}

type threadKey struct{ pid, tid chrome.ID }

func newTables() *tables {
	return &tables{seed: maphash.MakeSeed(), nameIDs: map[string]uint32{}, threads: map[threadKey]uint32{}}
}

// name returns the number of a name and a copy of it.
func (t *tables) name(text []byte) (uint32, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, ok := t.nameIDs[string(text)]
	if !ok {
		id = uint32(len(t.names))
		s := string(text)
		t.nameIDs[s] = id
		t.names = append(t.names, s)
	}
	return id, t.names[id]
}

func (t *tables) thread(k threadKey) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	id, ok := t.threads[k]
	if !ok {
		id = uint32(len(t.keys))
		t.threads[k] = id
		t.keys = append(t.keys, k)
	}
	return id
}

// nameOf returns the name with a number.
func (t *tables) nameOf(id uint32) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.names[id]
}

func (t *tables) threadOf(id uint32) threadKey {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keys[id]
}

// worker is what one goroutine keeps of the shared tables. Traces of millions
// of events have thousands of names and dozens of threads, so it hardly ever
// has to ask.
type worker struct {
	names      nameCache
	threads    threadCache
	categories [8]categoryEntry // the last ones met
	next       int              // of categories, to be replaced
	epoch      uint32
}

func newWorker(t *tables) *worker {
	w := &worker{names: nameCache{shared: t}, threads: threadCache{shared: t}}
	w.names.slots = make([]name, nameSlots)
	return w
}

// nameKind is what a name means, looked at once.
type nameKind uint8

const (
	isOrdinary nameKind = iota
	isRecord            // of communication, on the CPU
	isStep
	isWait
	isKept // a Python function that says what runs in it: a module, a phase
)

// name is a name with what it means.
type name struct {
	hash  uint64
	text  string
	id    uint32
	epoch uint32 // the part that it was last met in
	used  bool

	kind   nameKind
	record recordKind     // of isRecord
	kernel trace.Category // of device events
	step   int            // of isStep
}

// nameSlots is how many names a worker remembers, one for each hash.
const nameSlots = 1 << 13

type nameCache struct {
	shared *tables
	slots  []name
}

// find returns the entry of a name. It is valid until the next call.
func (c *nameCache) find(text []byte) *name {
	h := maphash.Bytes(c.shared.seed, text)
	n := &c.slots[h%nameSlots]
	if n.hash != h || n.text != string(text) || !n.used {
		id, s := c.shared.name(text)
		*n = name{hash: h, text: s, id: id, used: true, kernel: kernelCategory(text)}
		n.classify(text)
	}
	return n
}

// classify finds out what a CPU event of this name means.
func (n *name) classify(text []byte) {
	if kind, ok := recordKindOf(text); ok {
		n.kind, n.record = isRecord, kind
	} else if number, ok := stepNumber(text); ok {
		n.kind, n.step = isStep, number
	} else if string(text) == "_c10d_functional::wait_tensor" {
		n.kind = isWait
	} else if strings.HasPrefix(n.text, modulePrefix) || phaseOfFunction(n.text) != trace.UnknownPhase {
		n.kind = isKept
	}
}

// thread is a thread of the file.
type thread struct {
	key   threadKey
	id    uint32
	epoch uint32
	used  bool
}

// threadSlots is how many threads a worker remembers.
const threadSlots = 64

type threadCache struct {
	shared *tables
	slots  [threadSlots]thread
}

// find returns the entry of a thread. It is valid until the next call.
func (c *threadCache) find(k threadKey) *thread {
	pid, _ := k.pid.Int()
	tid, _ := k.tid.Int()
	s, _ := k.tid.Str()
	t := &c.slots[(uint64(pid)*31+uint64(tid)+uint64(len(s)))%threadSlots]
	if !t.used || t.key != k {
		*t = thread{key: k, id: c.shared.thread(k), used: true}
	}
	return t
}

type categoryEntry struct {
	text     string
	category trace.Category
	byName   bool // the name decides
	used     bool
}

// category is categoryOf for a name that has been looked at.
func (w *worker) category(cat []byte, n *name) trace.Category {
	var e *categoryEntry
	for i := range w.categories {
		if k := &w.categories[i]; k.used && k.text == string(cat) {
			e = k
			break
		}
	}
	if e == nil {
		e = &w.categories[w.next%len(w.categories)]
		w.next++
		c := categories[string(cat)]
		*e = categoryEntry{text: string(cat), category: c, byName: c == trace.Other || c == trace.Kernel, used: true}
	}
	switch {
	case !e.byName:
		return e.category
	case e.category == trace.Kernel:
		return n.kernel
	}
	return categoryOf(cat, []byte(n.text))
}
