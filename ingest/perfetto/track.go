package perfetto

import (
	"strconv"

	"mixdown/ingest/chrome"
	"mixdown/ingest/trace"
)

// trackID is an index into the tracks of a Reader.
type trackID int32

// track is a timeline: of a thread, of a process, or of its own below another.
type track struct {
	uuid      uint64
	legacy    bool // made of a legacy writer's pid and tid, has no uuid
	described bool // a packet describes it
	lane      bool // a hardware queue of a GPU, pid its number
	parent    uint64
	hasParent bool

	hasProcess, hasThread bool
	pid, tid              int64
	name, process, thread trace.NameID
	offset, end           int64 // of the packet that describes it
	resolved              bool
	outPID, outTID        chrome.ID
}

type legacyKey struct{ pid, tid int64 }

type laneKey struct {
	gpu  int64
	name trace.NameID
}

// tracks is the table of a Reader.
type tracks struct {
	list   []track
	byUUID map[uint64]trackID
	legacy map[legacyKey]trackID
	lanes  map[laneKey]trackID
	names  *trace.Strings
}

func newTracks(names *trace.Strings) tracks {
	return tracks{names: names, byUUID: map[uint64]trackID{}, legacy: map[legacyKey]trackID{}, lanes: map[laneKey]trackID{}}
}

// track returns the track with the given uuid, described or not.
func (r *Reader) track(uuid uint64, at int64) trackID {
	id, ok := r.tracks.byUUID[uuid]
	if !ok {
		id = r.addTrack(track{uuid: uuid}, at)
		r.tracks.byUUID[uuid] = id
	}
	return id
}

// legacyTrack returns the track of a thread that has no uuid.
func (r *Reader) legacyTrack(pid, tid int64, at int64) trackID {
	key := legacyKey{pid, tid}
	id, ok := r.tracks.legacy[key]
	if !ok {
		id = r.addTrack(track{legacy: true, described: true, hasThread: true, pid: pid, tid: tid}, at)
		r.tracks.legacy[key] = id
	}
	return id
}

// laneTrack returns the track of a hardware queue.
func (r *Reader) laneTrack(gpu int64, name trace.NameID, at int64) trackID {
	key := laneKey{gpu, name}
	id, ok := r.tracks.lanes[key]
	if !ok {
		id = r.addTrack(track{legacy: true, described: true, lane: true, hasProcess: true, pid: gpu, name: name}, at)
		r.tracks.lanes[key] = id
	}
	return id
}

func (r *Reader) addTrack(t track, at int64) trackID {
	if len(r.tracks.list) >= r.opts.MaxTracks {
		r.stop(at, "more than %d tracks", r.opts.MaxTracks)
	}
	r.tracks.list = append(r.tracks.list, t)
	return trackID(len(r.tracks.list) - 1)
}

// describeTrack takes a TrackDescriptor. Later ones of a track add to it.
func (r *Reader) describeTrack(b []byte, at int64) bool {
	var d track
	var name []byte
	whole := fields(b, func(x field) bool {
		switch x.num {
		case trackUUID:
			d.uuid = x.n
		case trackParent:
			d.parent, d.hasParent = x.n, true
		case trackName, trackStaticName, trackAtraceName:
			name = x.data
		case trackProcess:
			d.hasProcess = true
			return x.isBytes() && r.describeProcess(&d, x.data, at)
		case trackThread:
			d.hasThread = true
			return x.isBytes() && r.describeThread(&d, x.data, at)
		}
		return true
	})
	if !whole {
		return false
	}
	t := &r.tracks.list[r.track(d.uuid, at)]
	if !t.described {
		t.described, t.offset, t.end = true, at, r.in.at
	}
	if name != nil {
		t.name = r.text(name, at)
	}
	if d.hasParent {
		t.parent, t.hasParent = d.parent, d.parent != 0
	}
	if d.hasProcess {
		t.hasProcess, t.pid = true, d.pid
		if d.process != 0 {
			t.process = d.process
		}
	}
	if d.hasThread {
		t.hasThread, t.pid, t.tid = true, d.pid, d.tid
		if d.thread != 0 {
			t.thread = d.thread
		}
	}
	return true
}

func (r *Reader) describeProcess(d *track, b []byte, at int64) bool {
	return fields(b, func(x field) bool {
		switch x.num {
		case processPID:
			d.pid = int64(int32(x.n))
		case processName:
			d.process = r.text(x.data, at)
		}
		return true
	})
}

func (r *Reader) describeThread(d *track, b []byte, at int64) bool {
	return fields(b, func(x field) bool {
		switch x.num {
		case threadPID:
			d.pid = int64(int32(x.n))
		case threadTID:
			d.tid = int64(x.n)
		case threadName:
			d.thread = r.text(x.data, at)
		}
		return true
	})
}

// maxParents is how far up a track looks for its thread.
const maxParents = 64

// ids returns the process and thread of a track. The track of a thread has
// those, and so have tracks below it: PyTorch gives each event of a thread a
// track of its own. Other tracks are named by their name, as if it were a
// thread, in the process they are below of; a track that is nowhere below a
// process has no process.
func (t *tracks) ids(id trackID) (pid, tid chrome.ID) {
	x := &t.list[id]
	if x.resolved {
		return x.outPID, x.outTID
	}
	own := chrome.ID{}
	switch {
	case x.name != 0:
		own = chrome.StringID(t.names.Get(x.name))
	case x.hasProcess || x.uuid == 0: // the track of the process itself, or of the whole trace
	default:
		own = chrome.StringID("track " + strconv.FormatUint(x.uuid, 10))
	}
	x.outTID = own
	for p, n := x, 0; n < maxParents; n++ {
		if p.hasThread {
			x.outPID, x.outTID = chrome.IntID(p.pid), chrome.IntID(p.tid)
			break
		}
		if p.hasProcess {
			x.outPID = chrome.IntID(p.pid)
			if p == x && !x.lane {
				x.outTID = chrome.ID{}
			}
			break
		}
		up, ok := t.byUUID[p.parent]
		if !p.hasParent || !ok {
			break
		}
		p = &t.list[up]
	}
	x.resolved = true
	return x.outPID, x.outTID
}

// nextName returns the next M event: the name of a process or of a thread.
func (r *Reader) nextName() *chrome.Event {
	for r.named < 2*len(r.tracks.list) {
		t := &r.tracks.list[r.named/2]
		kind, name := "process_name", t.process
		if r.named%2 == 1 {
			kind, name = "thread_name", t.thread
			if name == 0 && t.hasThread {
				name = t.name
			}
		} else if name == 0 && t.hasProcess {
			name = t.name
		}
		r.named++
		if name == 0 || t.lane {
			continue
		}
		ev := &r.out
		*ev = chrome.Event{Phase: 'M', Name: []byte(kind), PID: chrome.IntID(t.pid), Offset: t.offset, End: t.end}
		if kind == "thread_name" {
			ev.TID = chrome.IntID(t.tid)
		}
		r.buf = append(appendText(append(r.buf[:0], `{"name": `...), []byte(r.names.Get(name))), '}')
		ev.Args = chrome.ArgsOf(r.buf)
		return ev
	}
	return nil
}
