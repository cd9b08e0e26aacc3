package kineto

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"mixdown/ingest/chrome"
	"mixdown/ingest/comm"
)

// recordKind tells the layers of one communication call apart. A call to
// all_reduce on NCCL shows as c10d::allreduce_ around record_param_comms
// around nccl:all_reduce around the launch.
type recordKind uint8

const (
	paramRecord   recordKind = iota // record_param_comms
	c10dRecord                      // c10d:: operator
	titleRecord                     // nccl:, gloo:, mpi:, ucc: annotation
	kernelRecord                    // arguments copied to the kernel by the profiler
	numRecordKind = kernelRecord
)

// record is a CPU event about communication with the arguments it came with.
type record struct {
	event int // index in the rank's events
	kind  recordKind
	name  string
	// threads of one rank and times are copied from the event: records are
	// searched by them.
	thread     int
	start, end int64

	collective string // "Collective name", else ""
	dtype      comm.DType
	in, out    int64 // elements; valid with sized
	sized      bool

	groupName, groupDesc string
	groupRanks           []int
	groupSize            int
	hasGroup             bool

	inSplits, outSplits []int64
	hasSplits           bool // the record says how parts are cut, evenly included

	src, dst int // global ranks, -1 unknown
	rank     int // "Rank", -1 unknown
	seq      int64
	hasSeq   bool
	commsID  uint64
	recordFn int64
	blocks   int // of the kernel, 0 unknown

	dims     [][]int64 // "Input Dims", one list of sizes for each plain tensor
	types    []string  // "Input type"
	concrete []string  // "Concrete Inputs": the scalar arguments in words
}

// titlePrefixes are the backends whose process groups annotate their operations.
var titlePrefixes = []string{"nccl:", "gloo:", "mpi:", "ucc:", "hccl:", "xccl:"}

// recordKindOf says whether the name is one of communication's CPU events.
func recordKindOf(name []byte) (recordKind, bool) {
	if bytes.Equal(name, []byte("record_param_comms")) {
		return paramRecord, true
	}
	if bytes.HasPrefix(name, []byte("c10d::")) {
		if _, ok := comm.ParseOp(string(name)); ok {
			return c10dRecord, true
		}
		return 0, false
	}
	for _, p := range titlePrefixes {
		if len(name) > len(p) && string(name[:len(p)]) == p {
			return titleRecord, true
		}
	}
	return 0, false
}

// readArgs fills rec from the arguments of its event. Keys: the names that
// PyTorch's ParamCommsUtils writes, in the spellings since 2023.
func (rec *record) readArgs(args chrome.Args) {
	rec.src, rec.dst, rec.rank = -1, -1, -1
	var hasIn, hasOut bool
	args.Each(func(key []byte, v chrome.Value) bool {
		switch string(key) {
		case "Collective name":
			rec.collective = text(v)
		case "dtype":
			rec.dtype, _ = comm.ParseDType(text(v))
		case "In msg nelems", "In msg size":
			rec.in, hasIn = v.Int()
		case "Out msg nelems", "Out msg size":
			rec.out, hasOut = v.Int()
		case "Group size":
			if n, ok := v.Int(); ok {
				rec.groupSize = int(n)
			}
		case "In split size":
			rec.inSplits, rec.hasSplits = parseInts(text(v))
		case "Out split size":
			rec.outSplits, _ = parseInts(text(v))
		case "Process Group Name", "Process Group ID":
			if s := text(v); s != "" {
				rec.groupName, rec.hasGroup = s, true
			} else if n, ok := v.Int(); ok {
				rec.groupName, rec.hasGroup = strconv.FormatInt(n, 10), true
			}
		case "Process Group Description":
			if s := text(v); s != "undefined" {
				rec.groupDesc = s
			}
		case "Process Group Ranks":
			if list, whole := parseInts(text(v)); whole {
				for _, r := range list {
					rec.groupRanks = append(rec.groupRanks, int(r))
				}
			}
		case "Src Rank":
			rec.src = rankArg(v)
		case "Dst Rank":
			rec.dst = rankArg(v)
		case "Rank":
			rec.rank = rankArg(v)
		case "Seq":
			rec.seq, rec.hasSeq = v.Int()
		case "Comms Id":
			rec.commsID, _ = v.Uint()
		case "Record function id":
			rec.recordFn, _ = v.Int()
		case "grid":
			rec.blocks = blocks(v)
		case "Input Dims", "Input dims":
			rec.dims = parseDims(v)
		case "Input type", "Input types":
			rec.types = parseStrings(v)
		case "Concrete Inputs":
			rec.concrete = parseStrings(v)
		}
		return true
	})
	rec.sized = hasIn && hasOut && rec.dtype != ""
}

// blocks is the number of blocks of communication's kernel, 0 where its grid has more
// than a GPU runs at once, as those never have.
func blocks(v chrome.Value) int {
	n := int(gridBlocks(v))
	if n > maxSMs {
		return 0
	}
	return n
}

// gridBlocks is the number of blocks of a kernel's grid, [128, 64, 1]; 0 where v is no
// grid, or has more than can be counted.
func gridBlocks(v chrome.Value) int32 {
	n := int64(1)
	v.Each(func(side chrome.Value) bool {
		s, ok := side.Int()
		if !ok || s < 1 || s > math.MaxInt32 {
			s = 0
		}
		n *= s
		return n > 0 && n <= math.MaxInt32
	})
	if v.Kind() != chrome.Array || v.Len() == 0 || n > math.MaxInt32 {
		return 0
	}
	return int32(n)
}

// text is the string of v, "" when it is none.
func text(v chrome.Value) string {
	s, _ := v.Str()
	return s
}

func parseStrings(v chrome.Value) []string {
	var list []string
	v.Each(func(t chrome.Value) bool {
		list = append(list, text(t))
		return true
	})
	return list
}

func rankArg(v chrome.Value) int {
	n, ok := v.Int()
	if !ok || n < 0 || n > 1<<30 {
		return -1
	}
	return int(n)
}

// parseInts reads a list in a string, "[2, 2]". It reports false when the list
// was cut by the profiler ("[0, 1, ...]"), because then it says nothing exact.
func parseInts(s string) ([]int64, bool) {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "[") || !strings.HasSuffix(s, "]") {
		return nil, false
	}
	s = strings.TrimSpace(s[1 : len(s)-1])
	if s == "" {
		return nil, true
	}
	var list []int64
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseInt(strings.TrimSpace(part), 10, 64)
		if err != nil {
			return nil, false
		}
		list = append(list, n)
	}
	return list, true
}

// parseDims reads "Input Dims": [[6144], [6144], [], ...]. Lists of tensors are
// nested one deeper; their tensors follow each other in the result in place of
// the list, so that indices of plain arguments before them stay right.
func parseDims(v chrome.Value) [][]int64 {
	var dims [][]int64
	v.Each(func(arg chrome.Value) bool {
		var sizes []int64
		nested := false
		arg.Each(func(e chrome.Value) bool {
			if e.Kind() == chrome.Array {
				nested = true
				var inner []int64
				e.Each(func(n chrome.Value) bool {
					size, _ := n.Int()
					inner = append(inner, size)
					return true
				})
				dims = append(dims, inner)
				return true
			}
			size, ok := e.Int()
			if ok {
				sizes = append(sizes, size)
			}
			return true
		})
		if !nested {
			dims = append(dims, sizes)
		}
		return true
	})
	return dims
}

// elements is the number of elements of a tensor of the given sizes: 1 for a
// tensor without dimensions.
func elements(sizes []int64) int64 {
	n := int64(1)
	for _, s := range sizes {
		n *= s
	}
	return n
}

// tensors returns the elements and type of all arguments together: coalesced
// operations have several tensors of one type.
func (rec *record) tensors() (int64, comm.DType, bool) {
	total, dtype, ok := rec.tensor(0)
	for i := 1; ok && i < len(rec.dims); i++ {
		n, d, isTensor := rec.tensor(i)
		if !isTensor || d != dtype {
			return 0, "", false
		}
		total += n
	}
	return total, dtype, ok
}

// tensor returns the elements and type of argument i where it is a tensor.
func (rec *record) tensor(i int) (int64, comm.DType, bool) {
	if i >= len(rec.dims) || i >= len(rec.types) {
		return 0, "", false
	}
	d, ok := comm.ParseDType(rec.types[i])
	return elements(rec.dims[i]), d, ok
}
