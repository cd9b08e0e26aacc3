package whatif

import (
	"fmt"
	"slices"
	"strings"
)

// Question is one or several what-ifs that hold together.
type Question struct {
	Text  string // as it was written
	parts []part
}

type part struct {
	kind   Kind
	change change
}

// Parse reads what-ifs separated by commas, each "NAME" or "NAME=VALUE".
func Parse(text string) (Question, error) {
	q := Question{Text: strings.TrimSpace(text)}
	for one := range strings.SplitSeq(q.Text, ",") {
		name, value, given := strings.Cut(strings.TrimSpace(one), "=")
		if name == "" {
			return q, fmt.Errorf("%w %q: one of them is empty (known: %s)", ErrSyntax, text, names())
		}
		k, ok := find(name)
		if !ok {
			return q, fmt.Errorf("%w %q: unknown name %q (known: %s)", ErrSyntax, text, name, names())
		}
		switch {
		case given && k.Value == "":
			return q, fmt.Errorf("%w %q: %s takes no value", ErrSyntax, text, name)
		case (!given || value == "") && k.Value != "" && !k.Optional():
			return q, fmt.Errorf("%w %q: %s needs a value: %s=%s, for example %s", ErrSyntax, text, name, name, k.Value, k.Example)
		}
		if k.once && slices.ContainsFunc(q.parts, func(p part) bool { return p.kind.Name == name }) {
			return q, fmt.Errorf("%w %q: %s is given twice: ask each in a --what-if of its own", ErrSyntax, text, name)
		}
		c, err := k.parse(value)
		if err != nil {
			return q, fmt.Errorf("%w %q: %s: %w (for example %s)", ErrSyntax, text, name, err, k.Example)
		}
		q.parts = append(q.parts, part{k, c})
	}
	if !q.OfStep() && !q.OfOrder() {
		return q, fmt.Errorf("%w %q: some of these change what all ranks ran, others the order of a pipeline: they can't be asked together", ErrSyntax, text)
	}
	return q, nil
}

// OfStep says whether the question can be asked of a step.
func (q Question) OfStep() bool { return q.all(func(k Kind) bool { return k.Step }) }

// OfOrder says whether the question can be asked of a pipeline's order.
func (q Question) OfOrder() bool { return q.all(func(k Kind) bool { return k.Order }) }

func (q Question) all(of func(Kind) bool) bool {
	for _, p := range q.parts {
		if !of(p.kind) {
			return false
		}
	}
	return true
}

// Kinds are the what-ifs of the question, each once.
func (q Question) Kinds() []Kind {
	var list []Kind
	seen := map[string]bool{}
	for _, p := range q.parts {
		if !seen[p.kind.Name] {
			seen[p.kind.Name] = true
			list = append(list, p.kind)
		}
	}
	return list
}
