package gate

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"mixdown/analyze/gate/shift"
	"mixdown/analyze/report"
)

// Cause is what a breach comes from, as far as the runs show it: the part of them
// that changed most in the same direction.
type Cause struct {
	Text  string  `json:"text"`
	Rank  *int    `json:"rank"` // null when no rank stands out, or none is known
	Group *string `json:"group"`
	Op    *string `json:"op"`
	Size  *string `json:"size"`
	Phase *string `json:"phase"`
	// Variant of a replay and its mix.
	Variant *string `json:"variant"`
	Mix     *string `json:"mix"`
	// Command is a command line of mixdown that shows more.
	Command string `json:"command"`
}

// cause finds the cause of a breach.
func (e *evaluation) cause(c *Check, rule *Rule) *Cause {
	out := &Cause{}
	if e.candidate.Replay != nil {
		e.ofReplay(c, out)
		return out
	}
	out.Command = e.command()
	worse := 1.0
	if rule.Limit.Direction < 0 || rule.Limit.How == AtLeast || c.Change != nil && *c.Change < 0 {
		worse = -1
	}
	s := search{e: e, worse: worse, changes: rule.Changes()}
	var parts []string
	part := c.Metric
	if part == Step {
		var grown float64
		if part, grown = s.part(c.Labels); grown <= 0 {
			out.Text = "no part of the step's time on the device stands out"
			return out
		}
		parts = append(parts, fmt.Sprintf("%s %s a rank", partNames[part], s.text(Nanoseconds, grown)))
	}
	switch found := s.operation(part, c.Labels, out, &parts); {
	case found && metrics[part].unit == Nanoseconds:
		s.late(part, out, &parts)
	case found:
	default:
		s.rank(part, c.Labels, out, &parts)
	}
	out.Text = strings.Join(parts, "; ")
	return out
}

// partNames are the parts of a step in words.
var partNames = map[Metric]string{Compute: "computation", ExposedComm: "exposed communication", Memory: "copies", Idle: "idle time"}

// search looks for what changed most; without a baseline for what is most.
type search struct {
	e       *evaluation
	worse   float64 // 1: upwards, -1: downwards
	changes bool
}

// movement is how far a metric went, upwards; known is false when that is not.
type movement struct {
	by    float64
	known bool
}

// moved is how far a metric went in the worse direction, false when not known.
// Many checks ask for the same, and in a large job there is much to go through.
func (s *search) moved(m Metric, l Labels) (float64, bool) {
	key := fmt.Sprint(m, l, s.changes)
	found, ok := s.e.movements[key]
	if !ok {
		found = s.measure(m, l)
		s.e.movements[key] = found
	}
	return s.worse * found.by, found.known
}

func (s *search) measure(m Metric, l Labels) movement {
	skip := s.e.policy.Samples.Warmup
	y := s.e.candidate.values(m, l, skip)
	if y.unknown != "" || len(y.list) == 0 {
		return movement{}
	}
	if !s.changes {
		return movement{shift.Median(y.list, 0).Median, true}
	}
	x := s.e.baseline.values(m, l, skip)
	if x.unknown != "" || len(x.list) == 0 {
		return movement{}
	}
	d, _, _, _ := shift.Interval(x.list, y.list, 0.95)
	return movement{d, true}
}

// text is an amount in words, with its sign when it is a change.
func (s *search) text(u Unit, moved float64) string {
	if s.changes {
		return u.Signed(s.worse * moved)
	}
	return u.Format(s.worse * moved)
}

// part finds the part of a step that moved most.
func (s *search) part(l Labels) (part Metric, most float64) {
	for _, m := range []Metric{Compute, ExposedComm, Memory, Idle} {
		if d, ok := s.moved(m, l); ok && d > most {
			part, most = m, d
		}
	}
	return part, most
}

// operation finds the kind of communication that moved most, for metrics that
// communication has.
func (s *search) operation(m Metric, l Labels, out *Cause, parts *[]string) bool {
	if metrics[m].kinds&ofOperations == 0 {
		return false
	}
	selected := l
	if l.kinds() == ofRanks { // operations are not known by rank
		selected = nil
	}
	var best Labels
	most := math.Inf(-1)
	seen := map[string]bool{}
	for _, r := range []*Record{s.e.candidate, s.e.baseline} {
		for i := 0; r != nil && i < len(r.Operations); i++ {
			labels := r.Operations[i].labels()
			if sizeless(m) && l[BySize] == "" {
				delete(labels, BySize)
			}
			if seen[labels.String()] || !selected.matches(labels) {
				continue
			}
			seen[labels.String()] = true
			if d, ok := s.moved(m, labels); ok && d > most {
				best, most = labels, d
			}
		}
	}
	if best == nil || most <= 0 && s.worse > 0 {
		return false
	}
	group, op, size, phase := best[ByGroup], best[ByOp], best[BySize], best[ByPhase]
	out.Group, out.Op = &group, &op
	text := report.Printable(op)
	if size != "" {
		out.Size = &size
		text += " " + size
	}
	if phase != "" {
		out.Phase = &phase
		text += " " + phase
	}
	*parts = append(*parts, fmt.Sprintf("%s in %s: %s %s", text, report.Printable(group), m, s.text(m.Unit(), most)))
	return true
}

// sizeless says whether operations of all sizes are one kind: larger messages are
// more bytes, not other ones.
func sizeless(m Metric) bool { return m == Bytes || m == Count }

// late names the rank that the others wait for, where waiting grew more than the
// transfer; else the rank whose own share moved most.
func (s *search) late(m Metric, out *Cause, parts *[]string) {
	l := Labels{ByGroup: *out.Group, ByOp: *out.Op, BySize: *out.Size}
	if out.Phase != nil {
		l[ByPhase] = *out.Phase
	}
	up := *s
	up.worse = 1
	wait, known := up.moved(Wait, l)
	transfer, also := up.moved(Transfer, l)
	if !known || !also {
		s.rank(m, nil, out, parts)
		return
	}
	if !s.changes || wait <= transfer || wait <= 0 {
		if s.changes && transfer > 0 {
			*parts = append(*parts, fmt.Sprintf("the transfer itself (%s, waiting %s)", up.text(Nanoseconds, transfer), up.text(Nanoseconds, wait)))
		}
		s.rank(m, nil, out, parts)
		return
	}
	*parts = append(*parts, fmt.Sprintf("waiting for the last member (%s, transfer %s)", up.text(Nanoseconds, wait), up.text(Nanoseconds, transfer)))
	up.rank(Compute, nil, out, parts)
}

// standsOut is how many times the mean of the others a rank must have moved to be
// named.
const standsOut = 1.5

// rank names the rank that moved most in a metric, when it stands out.
func (s *search) rank(m Metric, l Labels, out *Cause, parts *[]string) {
	if l[ByRank] != "" && l[ByRank] != "max" || metrics[m].kinds&ofRanks == 0 || len(s.e.candidate.Ranks) < 2 {
		return
	}
	key := fmt.Sprint(m, s.worse, s.changes)
	top, ok := s.e.tops[key]
	if !ok {
		top = s.top(m)
		s.e.tops[key] = top
	}
	switch {
	case !top.known:
	case top.by <= 0 || top.by < standsOut*top.others:
		*parts = append(*parts, "on all ranks alike")
	default:
		out.Rank = &top.rank
		*parts = append(*parts, fmt.Sprintf("most on rank %d: %s %s", top.rank, m, s.text(m.Unit(), top.by)))
	}
}

// topRank is the rank that moved most, and the mean of the others.
type topRank struct {
	rank       int
	by, others float64
	known      bool
}

func (s *search) top(m Metric) topRank {
	t := topRank{by: math.Inf(-1), known: true}
	sum := 0.0
	for i := range s.e.candidate.Ranks {
		rank := s.e.candidate.Ranks[i].Rank
		d, ok := s.moved(m, Labels{ByRank: strconv.Itoa(rank)})
		if !ok {
			return topRank{}
		}
		sum += d
		if d > t.by {
			t.rank, t.by = rank, d
		}
	}
	t.others = (sum - t.by) / float64(len(s.e.candidate.Ranks)-1)
	return t
}

// ofReplay names the variant.
func (e *evaluation) ofReplay(c *Check, out *Cause) {
	for i := range e.candidate.Replay.Variants {
		v := &e.candidate.Replay.Variants[i]
		if want := c.Labels[ByVariant]; v.Name == want || want == "" && i == 0 {
			out.Variant, out.Mix = &v.Name, &v.Mix
			out.Text = fmt.Sprintf("plan %s: %s", report.Printable(v.Name), report.Printable(v.Mix))
			out.Command = "mixdown replay TRACES --iters 30"
			if i > 0 && v.Mix != "" {
				out.Command += " --mix " + Quote(v.Mix)
			}
			if i > 0 && v.Schedule != "" && v.Schedule != "traced" {
				out.Command += " --schedule " + Quote(v.Schedule)
			}
		}
	}
}

// command shows the runs themselves, as far as they are here.
func (e *evaluation) command() string {
	switch {
	case e.baseline != nil && e.baseline.File == "" && e.candidate.File == "":
		return fmt.Sprintf("mixdown diff %s %s --rows -1", Quote(e.baseline.Source), Quote(e.candidate.Source))
	default:
		return fmt.Sprintf("mixdown analyze %s --breakdown --rows -1", Quote(e.candidate.Source))
	}
}

// Quote makes one word of a shell of a name.
func Quote(name string) string {
	plain := name != "" && strings.IndexFunc(name, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("/._-+=:,@%", c))
	}) < 0
	if plain {
		return name
	}
	return "'" + strings.ReplaceAll(report.Printable(name), "'", `'\''`) + "'"
}
