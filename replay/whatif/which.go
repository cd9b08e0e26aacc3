package whatif

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"mixdown/replay/mix"
	"mixdown/replay/plan"
	"mixdown/replay/sim"
)

// which says which operations a what-if concerns: a rule as in a mix, or links
// within or between machines.
type which struct {
	text  string
	rule  mix.Mix
	links string // "inter", "intra" or ""
}

const (
	inter = "inter"
	intra = "intra"
)

// parseWhich reads "all_reduce@group:dp", "*", "inter" or "intra".
func parseWhich(text string) (which, error) {
	w := which{text: text}
	if text == inter || text == intra {
		w.links, text = text, "*"
	}
	var err error
	if w.rule, err = mix.Parse(text + "=gloo"); err != nil {
		var reason string
		if _, after, ok := strings.Cut(err.Error(), strconv.Quote(text+"=gloo")+": "); ok {
			reason = " (" + strings.TrimPrefix(after, "rule "+strconv.Quote(text+"=gloo")+": ") + ")"
		}
		return w, fmt.Errorf("%q: expected an operation with conditions as in a mix, inter or intra%s", w.text, reason)
	}
	return w, nil
}

func (w which) String() string { return w.text }

// all says whether no operation is left out.
func (w which) all() bool { return w.text == "*" }

// matches says whether an operation is concerned.
func (w which) matches(s *Step, m sim.Meeting) bool {
	c := m.Communication
	if w.links != "" && s.crosses(m) != (w.links == inter) {
		return false
	}
	g := s.Workload.Groups[c.Group]
	bytes := s.bytes(m)
	_, ok := w.rule.Backend(plan.Op(c), bytes, g.Name, g.Description)
	if !ok && m.Transfer { // a receive and a batch are made of messages
		_, ok = w.rule.Backend(plan.CostOp(c), bytes, g.Name, g.Description)
	}
	return ok
}

// crosses says whether an operation goes from one machine to another: one of a group
// does where its own members are on several.
func (s *Step) crosses(m sim.Meeting) bool {
	if m.Transfer {
		return s.Machines.Apart(m.From, m.To)
	}
	return s.Machines.Of(m.Rank, m.Communication) > 1
}

// knowNodes refuses links between machines where nobody said how many there are.
func (s *Step) knowNodes(w which) error {
	if w.links != "" && s.Machines == nil {
		return fmt.Errorf("%w: which links lie between machines follows from their number: give --nodes", ErrNotApplicable)
	}
	if w.links != "" {
		s.note("ranks lie on the %d machines in order, as many on each", s.Machines.Count())
	}
	return nil
}

// parseRank reads a global rank.
func parseRank(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%q is no rank", text)
	}
	return n, nil
}

// parseFactor reads "x2", "2x" or "0.5x".
func parseFactor(text string) (float64, error) {
	if f, ok := times(text); ok && strings.Contains(text, "x") {
		return f, nil
	}
	return 0, fmt.Errorf("%q is no factor such as x2 or 0.5x, from 1e-9 to 1e9", text)
}

// times reads a number with an x before or after it, or none.
func times(text string) (float64, bool) {
	digits, before := strings.CutPrefix(text, "x")
	if !before {
		digits = strings.TrimSuffix(text, "x")
	}
	f, err := strconv.ParseFloat(digits, 64)
	return f, err == nil && f >= 1e-9 && f <= 1e9 && !strings.ContainsAny(digits, "xX_")
}

// parseTime reads a signed time such as +5us, in ns.
func parseTime(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if ns := d.Nanoseconds(); err != nil || ns > longest || ns < -longest {
		return 0, fmt.Errorf("%q is no time such as +5us", text)
	}
	return d.Nanoseconds(), nil
}

// parseSpeed reads "100GB/s" or "500MB/s", in bytes a second.
func parseSpeed(text string) (float64, error) {
	size, ok := strings.CutSuffix(text, "/s")
	if !ok {
		return 0, fmt.Errorf("%q is no speed such as 100GB/s", text)
	}
	unit := strings.TrimLeft(size, "0123456789.")
	n, err := strconv.ParseFloat(strings.TrimSuffix(size, unit), 64)
	one, err2 := mix.ParseSize("1" + unit)
	if err = errors.Join(err, err2); err != nil || !(n > 0 && n <= 1e9) {
		return 0, fmt.Errorf("%q is no speed such as 100GB/s", text)
	}
	return n * float64(one), nil
}

// cutLast cuts off what follows the last colon: "all_reduce@group:dp:x2" is the
// rule and the factor; without a colon the rule is "*".
func cutLast(text string) (rule, last string) {
	at := strings.LastIndexByte(text, ':')
	if at < 0 {
		return "*", text
	}
	return text[:at], text[at+1:]
}
