package executiontrace

import (
	"slices"
	"strconv"
	"strings"

	"mixdown/ingest/chrome"
	"mixdown/ingest/comm"
)

// recordKind tells the nodes of one communication apart.
type recordKind uint8

const (
	paramRecord recordKind = iota // record_param_comms
	c10dRecord                    // c10d:: operator
	titleRecord                   // nccl:, gloo:, ... annotation
	groupRecord                   // ## process_group:init ##
)

// record is what is kept of one node of communication.
type record struct {
	kind       recordKind
	id, parent int64
	rf         int64 // record function id, 0 when absent
	offset     int64

	name    string // the collective's name, else the node's
	op      comm.Op
	opKnown bool
	in, out tensors

	dtype       comm.DType // from attributes, with sizes
	inN, outN   int64
	sized       bool
	splits      []splitLists // most reliable first
	group       groupRef
	seq         int64
	seqKnown    bool
	description string // of process groups, JSON
}

// splitLists is one statement of how an all_to_all is cut, in rows.
type splitLists struct{ in, out []int64 }

// titlePrefixes are the backends that annotate their operations.
var titlePrefixes = []string{"nccl:", "gloo:", "mpi:", "ucc:", "hccl:", "xccl:"}

// maxName bounds names that are kept; a template argument list can be long.
const maxName = 200

// kindOf says which kind of communication node has this name.
func kindOf(name string) (recordKind, bool) {
	switch {
	case name == "record_param_comms":
		return paramRecord, true
	case strings.HasPrefix(name, "c10d::"):
		_, ok := comm.ParseOp(name)
		return c10dRecord, ok
	case strings.HasPrefix(name, "## process_group:init"):
		return groupRecord, true
	}
	return titleRecord, slices.ContainsFunc(titlePrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// arguments are the inputs or outputs of a node: one entry for each argument.
type arguments struct{ values, shapes, types []chrome.Value }

// maxArguments bounds the arguments that are looked at.
const maxArguments = 256

func list(v chrome.Value) []chrome.Value {
	var l []chrome.Value
	v.Each(func(e chrome.Value) bool {
		l = append(l, e)
		return len(l) < maxArguments
	})
	return l
}

// readNode reads a node. It reports false when that is no communication; not
// whole when it has no id or no name.
func readNode(b []byte, offset int64) (rec *record, whole bool) {
	var nameValue, idValue chrome.Value
	node := chrome.ParseValue(b)
	node.Fields(func(key []byte, v chrome.Value) bool {
		switch string(key) {
		case "name":
			nameValue = v
		case "id":
			idValue = v
		}
		return true
	})
	name, isName := nameValue.Str()
	id, isID := idValue.Int()
	if !isName || !isID {
		return nil, false
	}
	kind, ok := kindOf(name)
	if !ok {
		return nil, true
	}
	rec = &record{kind: kind, id: id, name: clip(name), offset: offset}
	var in, out arguments
	var attrs chrome.Value
	node.Fields(func(key []byte, v chrome.Value) bool {
		switch string(key) {
		case "parent", "ctrl_deps":
			rec.parent, _ = v.Int()
		case "rf_id":
			rec.rf, _ = v.Int()
		case "attrs":
			attrs = v
		case "inputs": // a list, with the rest beside it, before 1.0.2
			if v.Kind() == chrome.Object {
				in = nested(v)
			} else {
				in.values = list(v)
			}
		case "outputs":
			if v.Kind() == chrome.Object {
				out = nested(v)
			} else {
				out.values = list(v)
			}
		case "input_shapes":
			in.shapes = list(v)
		case "input_types":
			in.types = list(v)
		case "output_shapes":
			out.shapes = list(v)
		case "output_types":
			out.types = list(v)
		}
		return true
	})
	var attrSplits splitLists
	hasSplits := rec.readAttrs(attrs, &attrSplits)
	switch kind {
	case groupRecord:
		if len(in.values) > 0 {
			rec.description = text(in.values[0])
		}
		return rec, true
	case paramRecord:
		rec.readParam(&in, &out)
	case c10dRecord:
		rec.readOperator(&in)
	case titleRecord:
		rec.in = in.readTensors(0)
	}
	if hasSplits {
		rec.splits = append(rec.splits, attrSplits)
	}
	rec.op, rec.opKnown = comm.ParseOp(rec.name)
	return rec, true
}

func nested(v chrome.Value) (a arguments) {
	v.Fields(func(key []byte, v chrome.Value) bool {
		switch string(key) {
		case "values":
			a.values = list(v)
		case "shapes":
			a.shapes = list(v)
		case "types":
			a.types = list(v)
		}
		return true
	})
	return a
}

// readAttrs reads the list of attributes that nodes have since schema 1.0.2.
// Those about communication are there since PyTorch 2.4.
func (rec *record) readAttrs(attrs chrome.Value, splits *splitLists) (hasSplits bool) {
	var hasIn, hasOut, hasInSplits, hasOutSplits bool
	attrs.Each(func(attr chrome.Value) bool {
		var key string
		var v chrome.Value
		attr.Fields(func(k []byte, e chrome.Value) bool {
			switch string(k) {
			case "name":
				key = text(e)
			case "value":
				v = e
			}
			return true
		})
		switch key {
		case "rf_id":
			rec.rf, _ = v.Int()
		case "collective_name":
			if s := text(v); s != "" {
				rec.name = clip(s)
			}
		case "dtype":
			rec.dtype, _ = comm.ParseDType(text(v))
		case "in_msg_nelems":
			rec.inN, hasIn = v.Int()
		case "out_msg_nelems":
			rec.outN, hasOut = v.Int()
		case "in_split_size":
			splits.in, hasInSplits = parseInts(v)
		case "out_split_size":
			splits.out, hasOutSplits = parseInts(v)
		default:
			rec.group.readAttr(key, v)
		}
		return true
	})
	rec.sized = hasIn && hasOut && rec.dtype != "" && rec.inN >= 0 && rec.outN >= 0
	return hasInSplits && hasOutSplits
}

// readParam reads the arguments of record_param_comms:
//
//	[tensors,] sequence, group, rank, name, input splits, output splits [, start, stride] [, size]
//
// The group is a pointer up to 1.0.2 and a pair of name and description since.
// Sends have their peer in the place of the rank, and a wait has no tensors.
func (rec *record) readParam(in, out *arguments) {
	rec.in, rec.out = in.readTensors(0), out.readTensors(0)
	at := slices.IndexFunc(in.values, func(v chrome.Value) bool { return v.Kind() == chrome.String })
	if at < 0 {
		return
	}
	if rec.name == "record_param_comms" {
		rec.name = clip(text(in.values[at]))
	}
	if at >= 3 {
		rec.group.readArgument(in.values[at-2])
		seq := in.values[at-3]
		seq.Each(func(first chrome.Value) bool { // with a flag for point-to-point
			seq = first
			return false
		})
		rec.seq, rec.seqKnown = seq.Int()
	}
	if at+2 >= len(in.values) {
		return
	}
	var s splitLists
	var okIn, okOut bool
	s.in, okIn = parseInts(in.values[at+1])
	s.out, okOut = parseInts(in.values[at+2])
	if okIn && okOut {
		rec.splits = append(rec.splits, s)
	}
	rec.group.readTail(in.values[at+3:])
}

// readOperator reads the arguments of a c10d operator. Their positions are
// those of its schema: operators with two tensors have the output first, and
//
//	alltoall_base_(output, input, group, output_split_sizes, input_split_sizes, ...)
func (rec *record) readOperator(in *arguments) {
	op, _ := comm.ParseOp(rec.name)
	switch op {
	case comm.AllGather, comm.ReduceScatter, comm.AllToAll, comm.Gather, comm.Scatter:
		rec.out, rec.in = in.readTensors(0), in.readTensors(1)
	default:
		rec.in = in.readTensors(0)
	}
	if rec.name != "c10d::alltoall_base_" || len(in.values) < 5 {
		return
	}
	var s splitLists
	var okIn, okOut bool
	s.out, okOut = parseInts(in.values[3])
	s.in, okIn = parseInts(in.values[4])
	if okIn && okOut {
		rec.splits = append(rec.splits, s)
	}
}

// maxInts bounds one list of splits.
const maxInts = 1 << 20

// parseInts reads a list of numbers, or a string that holds one: "[2, 2]".
// Lists that were cut off ("[2, 2, ...]") say nothing exact: not ok.
func parseInts(v chrome.Value) ([]int64, bool) {
	if s, ok := v.Str(); ok {
		v = chrome.ParseValue([]byte(s))
	}
	if v.Kind() != chrome.Array {
		return nil, false
	}
	var l []int64
	ok := true
	v.Each(func(e chrome.Value) bool {
		n, isInt := e.Int()
		ok = isInt && n >= 0 && len(l) < maxInts
		l = append(l, n)
		return ok
	})
	return l, ok
}

func clip(s string) string {
	if len(s) > maxName {
		return strings.ToValidUTF8(s[:maxName], "")
	}
	return s
}

// groupRef is what one node says about its process group.
type groupRef struct {
	name, desc    string
	pointer       int64 // of the group in the process, 0 when unknown
	size          int
	start, stride int64
	strided       bool // start and stride are known
}

func (g *groupRef) readAttr(key string, v chrome.Value) {
	n, isInt := v.Int()
	switch key {
	case "pg_name":
		g.name = groupName(v)
	case "pg_desc":
		g.setDescription(text(v))
	case "pg_size":
		if isInt {
			g.setSize(n)
		}
	case "global_rank_start":
		g.start = n
	case "global_rank_stride":
		g.stride, g.strided = n, isInt
	}
}

// readArgument reads the group of record_param_comms.
func (g *groupRef) readArgument(v chrome.Value) {
	if v.Kind() != chrome.Array {
		g.pointer, _ = v.Int()
		return
	}
	for i, e := range list(v) {
		switch {
		case i == 0 && g.name == "":
			g.name = groupName(e)
		case i == 1 && g.desc == "":
			g.setDescription(text(e))
		}
	}
}

// readTail reads the numbers at the end of record_param_comms: the size, since
// 1.0.3 with start and stride before it.
func (g *groupRef) readTail(tail []chrome.Value) {
	var numbers []int64
	for _, v := range tail {
		n, ok := v.Int()
		if !ok || v.Kind() != chrome.Number {
			break
		}
		numbers = append(numbers, n)
	}
	switch {
	case len(numbers) == 1:
		g.setSize(numbers[0])
	case len(numbers) >= 3:
		if !g.strided {
			g.start, g.stride, g.strided = numbers[0], numbers[1], true
		}
		g.setSize(numbers[2])
	}
}

func (g *groupRef) setSize(n int64) {
	if n > 0 && n <= maxGroup && g.size == 0 {
		g.size = int(n)
	}
}

func (g *groupRef) setDescription(s string) {
	if s != "undefined" {
		g.desc = clip(s)
	}
}

// groupName is the name in v, which some versions write as a number.
func groupName(v chrome.Value) string {
	if s := text(v); s != "" {
		return clip(s)
	}
	if n, ok := v.Int(); ok {
		return strconv.FormatInt(n, 10)
	}
	return ""
}
