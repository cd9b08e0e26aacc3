package exports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/tune/algorithms"
)

// Classic rules of Open MPI's component tuned are numbers with comments: how many
// collectives; for each its id and how many communicator sizes; for each size, which
// holds from there to the next, how many message sizes; for each message size, which
// holds from there to the next and begins with 0: algorithm, fan-out, segment size
// and, in version 2, the most requests. Algorithm 0 is Open MPI's own choice.

// openMPIRule is an algorithm from a message size on.
type openMPIRule struct {
	from      int64
	algorithm int
}

// openMPISize is the rules from a communicator size on.
type openMPISize struct {
	ranks int
	rules []openMPIRule
}

// openMPI makes the rules of every collective. Sizes of groups that were not
// measured go back to Open MPI's own choice.
func (j *job) openMPI() (map[int][]openMPISize, error) {
	all := map[int][]openMPISize{}
	nodes := map[comm.Op]map[int]bool{}
	for _, g := range groups(j.list) {
		c, ok := algorithms.OpenMPI(g.op)
		if !ok {
			j.out.warn("%s is left out: Open MPI does not tune it", g.op)
			continue
		}
		if nodes[g.op] == nil {
			nodes[g.op] = map[int]bool{}
		}
		if nodes[g.op][g.ranks] {
			return nil, fmt.Errorf("%w: %s on %d ranks was measured on several numbers of nodes, which these rules don't know", ErrInexpressible, g.op, g.ranks)
		}
		nodes[g.op][g.ranks] = true
		s := openMPISize{ranks: max(g.ranks, 1)}
		for _, d := range g.list {
			number := 0
			if d.Variant != "" {
				if number, ok = c.Number(d.Variant); !ok {
					return nil, fmt.Errorf("%w: Open MPI has no algorithm %q for %s: it has %s", ErrInexpressible, d.Variant, c.Name, strings.Join(c.Algorithms[1:], ", "))
				}
			}
			if len(s.rules) == 0 && d.Min > 0 {
				s.rules = append(s.rules, openMPIRule{0, 0})
			}
			s.rules = append(s.rules, openMPIRule{d.Min, number})
			if d.Max < math.MaxInt64 {
				s.rules = append(s.rules, openMPIRule{d.Max + 1, 0})
			}
		}
		s.rules = tidy(s.rules)
		all[c.ID] = append(all[c.ID], s)
		if g.ranks > 0 {
			all[c.ID] = append(all[c.ID], openMPISize{g.ranks + 1, []openMPIRule{{0, 0}}})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: no collective that Open MPI tunes", ErrNothing)
	}
	for id, sizes := range all {
		slices.SortStableFunc(sizes, func(a, b openMPISize) int { return cmp.Compare(a.ranks, b.ranks) })
		if sizes[0].ranks > 1 { // smaller groups would get the first size's rules
			sizes = slices.Insert(sizes, 0, openMPISize{1, []openMPIRule{{0, 0}}})
		}
		var kept []openMPISize
		for _, s := range sizes { // where a measured size follows at once, the way back is not needed
			if n := len(kept); n > 0 && kept[n-1].ranks == s.ranks {
				if len(s.rules) > 1 || s.rules[0].algorithm != 0 {
					kept[n-1] = s
				}
				continue
			}
			kept = append(kept, s)
		}
		all[id] = kept
	}
	return all, nil
}

// tidy leaves the last of several rules from one size, and none that repeats the
// one before.
func tidy(rules []openMPIRule) []openMPIRule {
	var out []openMPIRule
	for _, r := range rules {
		if n := len(out); n > 0 && out[n-1].from == r.from {
			out[n-1] = r
			continue
		}
		out = append(out, r)
	}
	return slices.CompactFunc(out, func(a, b openMPIRule) bool { return a.algorithm == b.algorithm })
}

func writeOpenMPIRules1(j *job) (*Output, error) { return j.openMPIRules(1) }
func writeOpenMPIRules2(j *job) (*Output, error) { return j.openMPIRules(2) }

func (j *job) openMPIRules(version int) (*Output, error) {
	all, err := j.openMPI()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	if version == 2 {
		b.WriteString("rule-file-version-2\n")
	}
	fmt.Fprintf(&b, "%d # collectives\n", len(all))
	for _, c := range algorithms.OpenMPICollectives() {
		sizes, ok := all[c.ID]
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "%d # %s\n%d # communicator sizes\n", c.ID, c.Name, len(sizes))
		for _, s := range sizes {
			fmt.Fprintf(&b, "%d # ranks and more\n%d # message sizes\n", s.ranks, len(s.rules))
			for _, r := range s.rules {
				fmt.Fprintf(&b, "%d %d 0 0", r.from, r.algorithm)
				if version == 2 {
					b.WriteString(" 0")
				}
				fmt.Fprintf(&b, " # bytes, %s\n", c.Algorithms[r.algorithm])
			}
		}
	}
	j.out.Files = []File{{"openmpi.rules", []byte(b.String())}}
	j.openMPIUse()
	return j.out, nil
}

// openMPIUse says how rules are applied: components of a higher priority than
// tuned would take the collectives from it.
func (j *job) openMPIUse() {
	j.out.Apply = []string{
		"mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_dynamic_rules_filename FILE --mca coll_tuned_priority 100",
		"or OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_dynamic_rules_filename=FILE OMPI_MCA_coll_tuned_priority=100",
	}
	j.out.Proof = []string{
		"--mca coll_base_verbose 100: tuned says that it reads FILE and which algorithm it picks, where Open MPI is built to say so",
		"mixdown tune with and without the variables: the times change where the algorithm does",
	}
}

// JSON rules of Open MPI 6: at both levels the first match counts, ends are
// included, and an unknown collective makes the whole file void. Names are the
// parser's (reduce_scatter), not the shipped schema's (reducescatter).
type (
	openMPIDocument struct {
		Version     int                       `json:"rule_file_version"`
		Module      string                    `json:"module"`
		Collectives map[string][]openMPIRange `json:"collectives"`
	}
	openMPIRange struct {
		Min          int              `json:"comm_size_min"`
		Max          any              `json:"comm_size_max"`
		Distribution string           `json:"comm_rank_distribution"`
		Rules        []openMPIMessage `json:"rules"`
	}
	openMPIMessage struct {
		Min       int64  `json:"msg_size_min"`
		Max       any    `json:"msg_size_max"`
		Algorithm string `json:"alg"`
	}
)

func writeOpenMPIJSON(j *job) (*Output, error) {
	doc := openMPIDocument{Version: 3, Module: "tuned", Collectives: map[string][]openMPIRange{}}
	for _, g := range groups(j.list) {
		c, ok := algorithms.OpenMPI(g.op)
		if !ok {
			j.out.warn("%s is left out: Open MPI does not tune it", g.op)
			continue
		}
		r := openMPIRange{Min: g.ranks, Max: g.ranks, Distribution: "any"}
		if g.ranks == 0 {
			r.Min, r.Max = 1, "inf"
		}
		switch {
		case g.nodes == 1 && g.ranks > 1:
			r.Distribution = "single-node"
		case g.nodes > 0 && g.nodes == g.ranks:
			r.Distribution = "one-per-node"
		}
		for _, d := range g.list {
			m := openMPIMessage{Min: d.Min, Max: d.Max, Algorithm: d.Variant}
			if d.Max == math.MaxInt64 {
				m.Max = "inf"
			}
			if d.Variant == "" {
				continue // no rule: Open MPI's own choice
			}
			if _, ok := c.Number(d.Variant); !ok {
				return nil, fmt.Errorf("%w: Open MPI has no algorithm %q for %s: it has %s", ErrInexpressible, d.Variant, c.Name, strings.Join(c.Algorithms[1:], ", "))
			}
			r.Rules = append(r.Rules, m)
		}
		if len(r.Rules) > 0 {
			doc.Collectives[c.Name] = append(doc.Collectives[c.Name], r)
		}
	}
	if len(doc.Collectives) == 0 {
		return nil, fmt.Errorf("%w: no algorithm of Open MPI's was chosen", ErrNothing)
	}
	data, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, err
	}
	j.out.Files = []File{{"openmpi.json", append(data, '\n')}}
	j.openMPIUse()
	return j.out, nil
}
