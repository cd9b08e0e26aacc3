package pipeline

import (
	"slices"
	"testing"
)

func TestRepeats(t *testing.T) {
	make := func(text string) []piece {
		var list []piece
		for i, c := range text {
			list = append(list, piece{string(c), int64(10 * i)})
		}
		return list
	}
	for _, c := range []struct {
		text string
		want int
		at   []int64
	}{
		{"ababab", 0, []int64{0, 20, 40}},
		{"xabcdabcdy", 0, []int64{10, 50}},
		{"abacabac", 0, []int64{0, 40}}, // not a at every second place
		{"aaaa", 0, []int64{0, 10, 20, 30}},
		{"aaaa", 2, []int64{0, 20}},      // the forward had two
		{"lacxcaxc", 2, []int64{10, 50}}, // in another order, but a begins both
		{"abcdef", 0, nil},
		{"aabcdefghi", 0, nil}, // repeats, but is not most of the work
		{"", 0, nil},
		{"a", 0, nil},
	} {
		list := make(c.text)
		if got := repeats(list, int64(10*len(list)), c.want); !slices.Equal(got, c.at) {
			t.Errorf("%q with %d: layers begin at %v, want %v", c.text, c.want, got, c.at)
		}
	}
}
