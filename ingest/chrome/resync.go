package chrome

// seek says what resync looks for.
type seek uint8

const (
	seekEvent seek = iota // the next event of the array, or the end of the array
	seekKey               // the next key of the top-level object
	seekTop               // the next top-level value with events
)

// lookAhead is how many bytes resync wants to see to judge a place.
const lookAhead = 256

// resync moves the window on to the next place where reading can go on, or to
// the end. It judges by looks only; what it finds is then read, and counted if
// broken, in the usual way. So a stretch of broken events is counted event by
// event.
func (r *Reader) resync(s seek) {
	prev := byte(0)
	r.sep = sepUnknown
	for {
		r.ensure(lookAhead + 1)
		b := r.rest()
		// Judge those places that can be judged with a full view; near the
		// end of the file, all.
		last := len(b)
		if last > lookAhead {
			last -= lookAhead
		}
		for j := 0; j < last; j++ {
			c := b[j]
			if isSpace(c) {
				continue
			}
			view := b[j:min(len(b), j+lookAhead)]
			if r.stopsAt(s, view, prev, j+len(view) == len(b) && r.err != nil) {
				r.pos += j
				return
			}
			prev = c
		}
		r.pos += last
		if r.pos == r.end && !r.more() {
			return
		}
	}
}

// stopsAt tells whether b, which follows prev, is a place to go on. atEnd
// tells that nothing follows b.
func (r *Reader) stopsAt(s seek, b []byte, prev byte, atEnd bool) bool {
	switch c := b[0]; {
	case s == seekKey:
		return c == '"' && topKey(b)
	case c == '{' && s == seekTop:
		return eventStart(b) || topKey(b[skipSpace(b, 1):])
	case c == '{':
		// An object after a colon is a value inside an event.
		return prev != ':' && prev != '[' && eventStart(b)
	case c == ']' && s == seekEvent:
		return arrayEnd(b, prev, atEnd)
	}
	return false
}

// eventStart tells whether b looks like the beginning of an event: a brace and
// a key that events have.
func eventStart(b []byte) bool {
	key, _ := keyAt(b, skipSpace(b, 1))
	return eventKey(key)
}

// eventKey tells whether key is one that Chrome trace events have.
func eventKey(key []byte) bool {
	switch string(key) {
	case "ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "id2", "s", "bp", "bind_id", "scope",
		"cname", "tts", "tdur", "sf", "esf", "flow_in", "flow_out":
		return true
	}
	return false
}

// topKey tells whether b begins with a key of the top-level object that is
// known to occur in traces, and its colon.
func topKey(b []byte) bool {
	key, _ := keyAt(b, 0)
	switch string(key) {
	case "traceEvents", "traceName", "displayTimeUnit", "baseTimeNanoseconds", "distributedInfo",
		"schemaVersion", "deviceProperties", "otherData", "metadata", "systemTraceEvents", "stackFrames",
		"samples", "controllerTraceDataKey", "trace_id", "INFO", "WARNING", "ERROR",
		"record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules",
		"cupti_version", "cuda_runtime_version", "cuda_driver_version",
		"roctracer_version", "hip_runtime_version", "hip_driver_version":
		return true
	}
	return false
}

// keyAt returns the text of the short, plain key with its colon at b[i], and
// the index behind the colon; nil if there is none.
func keyAt(b []byte, i int) ([]byte, int) {
	if i >= len(b) || b[i] != '"' {
		return nil, i
	}
	i++
	for j := i; j < len(b) && j-i < 64; j++ {
		switch c := b[j]; {
		case c == '"':
			k := skipSpace(b, j+1)
			if k < len(b) && b[k] == ':' {
				return b[i:j], k + 1
			}
			return nil, i
		case c == '\\' || c < ' ':
			return nil, i
		}
	}
	return nil, i
}

// arrayEnd tells whether the bracket at b[0] ends the event array. Arrays
// inside args end with a bracket, too, so there must be more to it: a known
// key of the top-level object follows, or an event came before and nothing
// follows but the end of the object.
func arrayEnd(b []byte, prev byte, atEnd bool) bool {
	i := skipSpace(b, 1)
	if i < len(b) && b[i] == ',' {
		return topKey(b[skipSpace(b, i+1):])
	}
	if prev != '}' {
		return false
	}
	if i < len(b) && b[i] == '}' {
		i = skipSpace(b, i+1)
	}
	if i == len(b) {
		return atEnd
	}
	return b[i] == '{' || b[i] == '['
}
