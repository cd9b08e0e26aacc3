package whatif

import (
	"errors"
	"strings"
)

// ErrSyntax: a question could not be read.
var ErrSyntax = errors.New("invalid what-if")

// ErrNotApplicable: the trace lacks what a what-if needs, or nothing in it is
// concerned.
var ErrNotApplicable = errors.New("this what-if can't be answered from these traces")

// Kind is a what-if that can be asked. All texts are for people.
type Kind struct {
	Name       string
	Value      string // how its value is written; "" takes none, in brackets may be left out
	Example    string // of a whole question
	Summary    string // what is supposed
	Formula    string // how it is computed
	Source     string // the paper or system it is from
	Cost       string // what it would cost in memory or accuracy
	NotModeled string

	Step  bool // can be asked of a Step
	Order bool // can be asked of an Order

	AllRanks bool // needs the programs of all ranks, not of some that stand for others

	structure bool // changes which tasks there are, so it comes first
	once      bool // given twice it would contradict itself, or say nothing more
	parse     func(value string) (change, error)
}

// byStructure sorts what-ifs that change which tasks there are before those that change
// what they take, however they were written: what is supposed together holds together.
func byStructure(a, b part) int {
	switch {
	case a.kind.structure == b.kind.structure:
		return 0
	case a.kind.structure:
		return -1
	}
	return 1
}

// Optional says whether the what-if may be written without a value: all of it is in one
// pair of brackets.
func (k Kind) Optional() bool {
	depth := 0
	for i, c := range k.Value {
		switch c {
		case '[':
			depth++
		case ']':
			depth--
		}
		if depth == 0 {
			return c == ']' && i == len(k.Value)-1
		}
	}
	return false
}

// change is a what-if with its value.
type change interface{}

// stepChange changes what is played of a step.
type stepChange interface{ step(*Step) error }

// orderChange changes what is played of a pipeline.
type orderChange interface{ order(*Order) error }

// Known lists all what-ifs, in the order in which help shows them.
func Known() []Kind {
	return []Kind{
		free, bandwidth, latency, link, slow, heal, overlapped, buckets, compressed, worldSize,
		repartition, slices_, reshard, recompute, offload, local, lost, fill,
	}
}

func find(name string) (Kind, bool) {
	for _, k := range Known() {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

func names() string {
	var list []string
	for _, k := range Known() {
		list = append(list, k.Name)
	}
	return strings.Join(list, " ")
}
