package chrome

import "strconv"

// Event is one element of the event array.
//
// Byte slices and Args alias memory of the Reader and are valid until the next
// call of its Next method.
type Event struct {
	Phase     byte // "ph": 'X', 'B', 'E', 'i', 'I', 'C', 'M', 's', 't', 'f', 'b', 'n', 'e', ...; 0 when absent
	Scope     byte // "s" of an instant event: 'g', 'p' or 't'; 0 when absent
	BindPoint byte // "bp" of a flow event: 'e' binds to the enclosing slice; 0 when absent

	HasTS  bool // TS is known
	HasDur bool // Dur is known and not negative

	// Name and Cat are unescaped and valid UTF-8. They may hold control bytes.
	Name, Cat []byte

	// PID and TID are numbers or strings, whatever the file has.
	PID, TID ID

	// TS and Dur are nanoseconds. TS counts from whatever the file counts
	// from. A negative duration is how writers mark an unfinished event: Dur
	// then holds it, HasDur is false, and the event is to be taken as open.
	TS, Dur int64

	// ID is the flow or async id ("id", or the member of "id2"), IDScope its
	// "scope". BindID is "bind_id".
	ID, BindID ID
	IDScope    []byte

	// Args is the "args" object; empty when absent.
	Args Args

	// Offset and End delimit the event in the decompressed stream, in bytes.
	Offset, End int64
}

// IDKind tells what an ID holds.
type IDKind uint8

// The kinds of ID.
const (
	IDAbsent IDKind = iota // the key is missing or null
	IDInt                  // an integer that fits int64
	IDString               // a string, or a number that is no int64 as its text
)

// ID is a process, thread, flow or async id: an integer, a string, or absent.
// IDs can be compared with == and used as map keys; the number 7 and the
// string "7" are different.
type ID struct {
	kind IDKind
	num  int64
	str  string
}

// IntID returns the ID of a number.
func IntID(n int64) ID { return ID{kind: IDInt, num: n} }

// StringID returns the ID of a string.
func StringID(s string) ID { return ID{kind: IDString, str: s} }

// Kind tells what id holds.
func (id ID) Kind() IDKind { return id.kind }

// Int returns the number, and whether id is one.
func (id ID) Int() (int64, bool) { return id.num, id.kind == IDInt }

// Str returns the string, and whether id is one.
func (id ID) Str() (string, bool) { return id.str, id.kind == IDString }

// String returns id as text for people; it is empty when id is absent.
func (id ID) String() string {
	if id.kind == IDInt {
		return strconv.FormatInt(id.num, 10)
	}
	return id.str
}
