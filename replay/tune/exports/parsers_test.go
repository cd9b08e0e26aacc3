package exports_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// tunerLookup searches a configuration as NCCL's example tuner plugin does: comments
// have # in column 1, fields are between commas, ends of ranges are included, -1 is
// any, and the first line that matches counts.
func tunerLookup(t *testing.T, text, collective string, bytes uint64, nodes, ranks int) string {
	t.Helper()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if len(line) > 255 {
			t.Fatalf("a line of %d characters", len(line))
		}
		f := strings.Split(strings.TrimSpace(line), ",")
		if len(f) < 8 || len(f) > 10 || slices.Contains(f, "") {
			t.Fatalf("line %q has %d fields", line, len(f))
		}
		if !slices.Contains([]string{"broadcast", "reduce", "allgather", "reducescatter", "allreduce"}, f[0]) ||
			!slices.Contains([]string{"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"}, f[3]) ||
			!slices.Contains([]string{"ll", "ll128", "simple"}, f[4]) {
			t.Fatalf("line %q: a word that the plugin does not know", line)
		}
		if n, err := strconv.Atoi(f[5]); err != nil || n < 1 {
			t.Fatalf("line %q leaves NCCL with one channel", line)
		}
		from, err1 := strconv.ParseUint(f[1], 10, 64)
		to, err2 := strconv.ParseUint(f[2], 10, 64)
		if err1 != nil || err2 != nil || to < from {
			t.Fatalf("line %q: a range", line)
		}
		is := func(field string, n int) bool { return field == "-1" || field == fmt.Sprint(n) }
		if f[0] == collective && from <= bytes && bytes <= to && is(f[6], nodes) && is(f[7], ranks) {
			return f[3] + "/" + f[4] + "/" + f[5]
		}
	}
	return ""
}

// classicRules are a classic rule file of Open MPI.
type classicRules map[int][]classicSize

type classicSize struct {
	ranks    int
	messages [][2]int64 // from, algorithm
}

// parseRules reads a file as coll_tuned_dynamic_file.c does: numbers, with
// comments from # to the end of the line.
func parseRules(t *testing.T, text string, version int) classicRules {
	t.Helper()
	first, rest, _ := strings.Cut(text, "\n")
	if (version == 2) != (first == "rule-file-version-2") {
		t.Fatalf("version %d begins with %q", version, first)
	}
	if version == 2 {
		text = rest
	}
	var numbers []int64
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for _, f := range strings.Fields(line) {
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				t.Fatalf("%q is no number", f)
			}
			numbers = append(numbers, n)
		}
	}
	next := func() int64 {
		if len(numbers) == 0 {
			t.Fatal("the file ends early")
		}
		n := numbers[0]
		numbers = numbers[1:]
		return n
	}
	rules := classicRules{}
	for range next() {
		id := int(next())
		for range next() {
			s := classicSize{ranks: int(next())}
			for i := range next() {
				m := [2]int64{next(), next()}
				next() // fan-out
				next() // segment size
				if version == 2 {
					next() // requests
				}
				if i == 0 && m[0] != 0 || i > 0 && m[0] <= s.messages[i-1][0] {
					t.Fatalf("message sizes of collective %d do not go up from 0", id)
				}
				s.messages = append(s.messages, m)
			}
			rules[id] = append(rules[id], s)
		}
	}
	if len(numbers) > 0 {
		t.Fatalf("%d numbers too many", len(numbers))
	}
	return rules
}

// lookup takes the last size of groups and of messages that is not above, the first
// where all are.
func (r classicRules) lookup(id, ranks int, bytes int64) int {
	sizes := r[id]
	if len(sizes) == 0 {
		return 0
	}
	best := sizes[0]
	for _, s := range sizes {
		if s.ranks > ranks {
			break
		}
		best = s
	}
	algorithm := best.messages[0][1]
	for _, m := range best.messages {
		if m[0] > bytes {
			break
		}
		algorithm = m[1]
	}
	return int(algorithm)
}

// jsonLookup searches rules of Open MPI 6: at both levels the first match counts.
func jsonLookup(t *testing.T, text, collective, distribution string, ranks int, bytes int64) string {
	t.Helper()
	var doc struct {
		Version     int    `json:"rule_file_version"`
		Module      string `json:"module"`
		Collectives map[string][]map[string]any
	}
	if err := json.Unmarshal([]byte(text), &doc); err != nil || doc.Version != 3 || doc.Module != "tuned" {
		t.Fatalf("%v, version %d of %q", err, doc.Version, doc.Module)
	}
	known := []string{"allgather", "allgatherv", "allreduce", "alltoall", "alltoallv", "alltoallw", "barrier", "bcast", "exscan", "gather", "gatherv", "reduce", "reduce_scatter", "reduce_scatter_block", "scan", "scatter", "scatterv"}
	number := func(v any) int64 {
		if v == "inf" {
			return math.MaxInt64
		}
		return int64(v.(float64))
	}
	for name, ranges := range doc.Collectives {
		if !slices.Contains(known, name) {
			t.Fatalf("collective %q: the whole file is void", name)
		}
		for _, r := range ranges {
			if name != collective || number(r["comm_size_min"]) > int64(ranks) || number(r["comm_size_max"]) < int64(ranks) {
				continue
			}
			if d := r["comm_rank_distribution"]; d != "any" && d != distribution {
				continue
			}
			for _, rule := range r["rules"].([]any) {
				m := rule.(map[string]any)
				if number(m["msg_size_min"]) <= bytes && bytes <= number(m["msg_size_max"]) {
					return m["alg"].(string)
				}
			}
			return ""
		}
	}
	return ""
}

// uccLookup reads UCC_TL_*_TUNE as ucc_coll_score.c does and returns the transport
// with the highest score, and its algorithm; "" where no token applies.
func uccLookup(t *testing.T, vars map[string]string, collective, memory string, ranks int, bytes int64) string {
	t.Helper()
	best := ""
	for name, value := range vars {
		layer := strings.TrimSuffix(strings.TrimPrefix(name, "UCC_TL_"), "_TUNE")
		for token := range strings.SplitSeq(value, "#") {
			applies, scored, algorithm := true, false, ""
			for _, f := range strings.Split(token, ":") {
				switch {
				case strings.HasPrefix(f, "@"):
					algorithm = f[1:]
				case strings.HasPrefix(f, "["):
					applies = applies && f == fmt.Sprintf("[%d]", ranks)
				case f == "inf":
					scored = true
				case f == "host" || f == "cuda":
					applies = applies && f == memory
				case f[0] >= '0' && f[0] <= '9':
					from, to, ok := strings.Cut(f, "-")
					if !ok {
						t.Fatalf("token %q: field %q", token, f)
					}
					applies = applies && uccBytes(t, from) <= bytes && (to == "inf" || bytes < uccBytes(t, to))
				default:
					applies = applies && f == collective
				}
			}
			if !scored {
				t.Fatalf("token %q has no score", token)
			}
			if applies {
				if best != "" {
					t.Fatalf("two transports have the same score for %s of %d bytes", collective, bytes)
				}
				best = layer + "/" + algorithm
			}
		}
	}
	return best
}

func uccBytes(t *testing.T, s string) int64 {
	t.Helper()
	unit := map[byte]int64{'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40}[s[len(s)-1]]
	if unit > 0 {
		s = s[:len(s)-1]
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatalf("size %q: %v", s, err)
	}
	return n * max(unit, 1)
}

// selection is a selection tree of MPICH: keys in order, and what is below each.
type selection struct {
	keys     []string
	children []*selection
}

func parseSelection(t *testing.T, text string) *selection {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	var read func() *selection
	read = func() *selection {
		if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
			t.Fatalf("%v, %v: expected an object", tok, err)
		}
		s := &selection{}
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			s.keys = append(s.keys, key.(string))
			s.children = append(s.children, read())
		}
		if _, err := dec.Token(); err != nil {
			t.Fatal(err)
		}
		return s
	}
	return read()
}

// lookup goes down the tree as csel.c does: the first child whose condition holds;
// for a built-in, commutative operation, not in place, in a communicator within one
// node. Every branch must come to an algorithm.
func (s *selection) lookup(t *testing.T, collective string, ranks int, bytes, count int64) string {
	t.Helper()
	for i, key := range s.keys {
		name, value, _ := strings.Cut(key, "=")
		limit := int64(-1)
		for _, op := range []string{"<=", "<"} {
			if n, v, ok := strings.Cut(key, op); ok {
				name, value = n, v
				if v == "pow2" {
					limit = 1
					for limit*2 <= int64(ranks) {
						limit *= 2
					}
				} else {
					var err error
					if limit, err = strconv.ParseInt(v, 10, 64); err != nil || limit > math.MaxInt32 {
						t.Fatalf("condition %q: atoi would not read it", key)
					}
				}
				if op == "<" {
					limit--
				}
				break
			}
		}
		var holds bool
		switch name {
		case "algorithm":
			return value
		case "collective":
			holds = value == collective
		case "comm_type":
			holds = value == "intra"
		case "comm_size":
			holds = value == "any" || value == "pow2" && ranks&(ranks-1) == 0 && limit < 0 || limit >= 0 && int64(ranks) <= limit
		case "avg_msg_size", "total_msg_size":
			holds = value == "any" || limit >= 0 && bytes <= limit
		case "count":
			holds = value == "any" || limit >= 0 && count <= limit
		case "is_commutative", "is_op_built_in", "is_node_consecutive", "is_block_regular":
			holds = value == "yes"
		case "is_sendbuf_inplace", "is_multi_threaded":
			holds = value == "no"
		case "comm_hierarchy":
			holds = value == "any"
		default:
			t.Fatalf("condition %q is not known", key)
		}
		if holds {
			return s.children[i].lookup(t, collective, ranks, bytes, count)
		}
	}
	t.Fatalf("%s on %d ranks, %d bytes: the branch %v is not complete", collective, ranks, bytes, s.keys)
	return ""
}
