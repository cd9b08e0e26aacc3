package gate

import (
	"fmt"
	"slices"
	"strconv"
)

// values are those of one metric and one choice of labels in every step, or why
// they are not known.
type values struct {
	list    []float64
	unknown string // reason; the list is nil then
	// absent: the run has nothing of the kind, and the list is zeros.
	absent bool
}

func unknown(format string, args ...any) values { return values{unknown: fmt.Sprintf(format, args...)} }

// labelsIn lists the choices of labels in a run that a metric has values for.
func (r *Record) labelsIn(k kind, m Metric) []Labels {
	var list []Labels
	switch k {
	case ofRanks:
		for i := range r.Ranks {
			list = append(list, Labels{ByRank: strconv.Itoa(r.Ranks[i].Rank)})
		}
	case ofOperations:
		for i := range r.Operations {
			list = append(list, r.Operations[i].labels())
		}
	case ofVariants:
		for i := 0; r.Replay != nil && i < len(r.Replay.Variants); i++ {
			if m != Speedup || r.Replay.Variants[i].Speedup != nil {
				list = append(list, Labels{ByVariant: r.Replay.Variants[i].Name})
			}
		}
	}
	return list
}

// expand replaces a selector's patterns by the names of either run that match.
// The second result is false when a pattern matches nothing.
func expand(rule *Rule, runs ...*Record) ([]Labels, bool) {
	patterns := rule.Select.patterns()
	if len(patterns) == 0 {
		return []Labels{rule.Select}, true
	}
	seen := map[string]Labels{}
	for _, r := range runs {
		if r == nil {
			continue
		}
		for _, l := range r.labelsIn(rule.Select.kinds(), rule.Metric) {
			if !rule.Select.matches(l) {
				continue
			}
			one := Labels{}
			for label, v := range rule.Select {
				one[label] = v
				if slices.Contains(patterns, label) {
					one[label] = l[label]
				}
			}
			seen[one.String()] = one
		}
	}
	var list []Labels
	for _, key := range sortedKeys(seen) {
		list = append(list, seen[key])
	}
	return list, len(list) > 0
}

// values takes a metric out of a run. Skip is how many of the first steps are
// left out; iterations of replays had their warm-up before.
func (r *Record) values(m Metric, l Labels, skip int) values {
	what := metrics[m]
	if what.kinds == ofVariants || l.kinds() == ofVariants || r.Mean == nil && m == Step {
		return r.ofVariant(m, l)
	}
	if r.Mean == nil {
		return unknown("it is the result of a replay, which has no %s", m)
	}
	if len(r.Steps) == 0 {
		return unknown("its traces mark no steps")
	}
	var v values
	if l.kinds() == ofOperations || what.kinds&ofRanks == 0 {
		v = r.ofOperations(m, l)
	} else {
		v = r.ofRanks(m, l)
	}
	v.list = v.list[min(skip, len(v.list)):]
	return v
}

func (r *Record) ofRanks(m Metric, l Labels) values {
	switch rank := l[ByRank]; {
	case rank == "":
		return values{list: floats(r.Mean.of(m))}
	case rank == "max":
		return values{list: floats(r.Max.of(m))}
	case len(r.Ranks) == 0:
		return unknown("it holds no times of single ranks")
	default:
		n, err := strconv.Atoi(rank)
		for i := range r.Ranks {
			if err == nil && r.Ranks[i].Rank == n {
				return values{list: floats(r.Ranks[i].of(m))}
			}
		}
		return unknown("it has no rank %s, or that rank lacks steps", rank)
	}
}

// ofOperations adds up the operations that the selector chooses.
func (r *Record) ofOperations(m Metric, l Labels) values {
	sum, over := make([]float64, len(r.Steps)), make([]float64, len(r.Steps))
	found := false
	for i := range r.Operations {
		o := &r.Operations[i]
		if !o.matches(l) {
			continue
		}
		found = true
		list, divisor := o.of(m)
		if list == nil {
			return unknown("%s of %s in %s is not known", m, o.Op, o.Group)
		}
		for s := range sum {
			sum[s] += float64(list[s])
			if divisor != nil {
				over[s] += float64(divisor[s])
			}
		}
	}
	bandwidth := m == AlgBW || m == BusBW
	for s := range sum {
		switch {
		case !bandwidth:
			sum[s] /= float64(r.Facts.RanksRead)
		case over[s] > 0:
			sum[s] /= over[s]
		default:
			return unknown("no transfer was measured in step %s", r.Steps[s])
		}
	}
	return values{list: sum, absent: !found}
}

// of is the values of a metric of operations, nil when not known, and for
// bandwidths the times that they are over.
func (o *Operation) of(m Metric) (list, over []int64) {
	switch m {
	case Count:
		return o.Count, nil
	case Comm:
		return o.Comm, nil
	case ExposedComm:
		return o.Exposed, nil
	case HiddenComm:
		return o.Hidden, nil
	case Bytes:
		return o.Bytes, nil
	case Wait:
		return o.Wait, nil
	case Transfer:
		return o.Transfer, nil
	case AlgBW, BusBW:
		if o.Transfer == nil {
			return nil, nil
		}
		if m == AlgBW {
			return o.Bytes, o.Transfer
		}
		return o.BusBytes, o.Transfer
	}
	return nil, nil
}

func (r *Record) ofVariant(m Metric, l Labels) values {
	if r.Replay == nil {
		return unknown("it is no result of \"mixdown replay --format json\", which has %s", m)
	}
	if m == Fidelity {
		if r.Replay.Fidelity == nil {
			return unknown("the step of the trace is not known")
		}
		return values{list: r.Replay.Fidelity}
	}
	for i := range r.Replay.Variants {
		v := &r.Replay.Variants[i]
		if want := l[ByVariant]; want != v.Name && !(want == "" && i == 0) {
			continue
		}
		switch {
		case v.Unverified:
			return unknown("the data of %s were not verified", v.Name)
		case m == Step:
			return values{list: floats(v.Step)}
		case v.Speedup == nil:
			return unknown("%s is the baseline itself", v.Name)
		}
		return values{list: v.Speedup}
	}
	return unknown("it has no variant %s", l[ByVariant])
}

func floats(list []int64) []float64 {
	out := make([]float64, len(list))
	for i, v := range list {
		out[i] = float64(v)
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Values are those of a metric in every step but the first skip; nil when they are
// not known.
func (r *Record) Values(m Metric, l Labels, skip int) []float64 { return r.values(m, l, skip).list }
