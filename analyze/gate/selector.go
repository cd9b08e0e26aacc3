package gate

import (
	"fmt"
	"strings"
)

// Label is what a selector chooses by.
type Label string

// The labels. Rank is a number, or max for the rank that has most in each step;
// without it times are means over the ranks, but step is the slowest rank's.
const (
	ByRank    Label = "rank"
	ByGroup   Label = "group" // the group's description, else its name, else its shape
	ByOp      Label = "op"
	BySize    Label = "size" // size class, as "mixdown diff" shows it
	ByPhase   Label = "phase"
	ByVariant Label = "variant"
)

// kindOf says which metrics have a label.
var kindOf = map[Label]kind{ByRank: ofRanks, ByGroup: ofOperations, ByOp: ofOperations, BySize: ofOperations, ByPhase: ofOperations, ByVariant: ofVariants}

// order of labels in text.
var labelOrder = []Label{ByRank, ByGroup, ByOp, BySize, ByPhase, ByVariant}

// Labels are values of labels. As a selector, what it doesn't name is added up,
// and a value with * or ? stands for each value that matches it.
type Labels map[Label]string

// String is the labels in brackets, "" when there are none.
func (l Labels) String() string {
	var parts []string
	for _, k := range labelOrder {
		if v, ok := l[k]; ok {
			if strings.ContainsAny(v, `,]="`) {
				v = `"` + strings.ReplaceAll(v, `"`, `\"`) + `"`
			}
			parts = append(parts, string(k)+"="+v)
		}
	}
	if parts == nil {
		return ""
	}
	return "[" + strings.Join(parts, ",") + "]"
}

// kinds are those of all labels together.
func (l Labels) kinds() kind {
	var k kind
	for label := range l {
		k |= kindOf[label]
	}
	return k
}

// matches says whether values agree with the selector.
func (l Labels) matches(values Labels) bool {
	for label, pattern := range l {
		if !glob(pattern, values[label]) {
			return false
		}
	}
	return true
}

// patterns are the labels that the selector gives a pattern for.
func (l Labels) patterns() []Label {
	var list []Label
	for _, label := range labelOrder {
		if strings.ContainsAny(l[label], "*?") {
			list = append(list, label)
		}
	}
	return list
}

// glob matches a whole name: * is any run of characters, ? one.
func glob(pattern, name string) bool {
	n := []rune(name)
	reach := make([]bool, len(n)+1) // pattern so far matches name[:i]
	reach[0] = true
	for _, c := range pattern {
		next := make([]bool, len(n)+1)
		for i, ok := range reach {
			switch {
			case c == '*':
				next[i] = ok || i > 0 && next[i-1]
			case ok && i < len(n) && (c == '?' || c == n[i]):
				next[i+1] = true
			}
		}
		reach = next
	}
	return reach[len(n)]
}

// parseSelector reads what is between the brackets: label=value, with commas
// between; a value in double quotes may have any character.
func parseSelector(text string) (Labels, error) {
	l := Labels{}
	for rest := strings.TrimSpace(text); rest != ""; {
		name, after, ok := strings.Cut(rest, "=")
		label := Label(strings.TrimSpace(name))
		if _, known := kindOf[label]; !ok || !known {
			return nil, fmt.Errorf("selector %q: expected LABEL=VALUE, with a label of %s", rest, labelNames())
		}
		if _, twice := l[label]; twice {
			return nil, fmt.Errorf("selector %q: %s twice", text, label)
		}
		var value string
		var err error
		if value, rest, err = cutValue(strings.TrimSpace(after)); err != nil {
			return nil, fmt.Errorf("selector %q: %w", text, err)
		}
		if value == "" {
			return nil, fmt.Errorf("selector %q: %s has no value", text, label)
		}
		l[label] = value
	}
	return l, nil
}

// cutValue takes a value, quoted or up to a comma, off the front of text.
func cutValue(text string) (value, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		value, rest, _ = strings.Cut(text, ",")
		return strings.TrimSpace(value), strings.TrimSpace(rest), nil
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case c == '"':
			rest = strings.TrimSpace(text[i+1:])
			if rest != "" && rest[0] != ',' {
				return "", "", fmt.Errorf("expected a comma before %q", rest)
			}
			return b.String(), strings.TrimSpace(strings.TrimPrefix(rest, ",")), nil
		default:
			b.WriteByte(c)
		}
	}
	return "", "", fmt.Errorf("a quote is not closed")
}

func labelNames() string {
	var names []string
	for _, l := range labelOrder {
		names = append(names, string(l))
	}
	return strings.Join(names, ", ")
}
