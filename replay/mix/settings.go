package mix

import (
	"cmp"
	"fmt"
	"slices"
)

// checkSettings: all ranks have the same tuning files and environment (E9, D12).
// Libraries choose their algorithms on every rank alone, from these.
func (m *model) checkSettings(found *collector) {
	ranks := map[string][]int32{}
	for _, program := range m.w.Programs {
		if hash := program.GetPlace().GetEnvironment(); hash != "" {
			ranks[hash] = append(ranks[hash], program.Rank)
		}
	}
	if len(ranks) < 2 {
		return
	}
	var hashes []string
	for hash := range ranks {
		hashes = append(hashes, hash)
	}
	// The one that most ranks have first, those that differ behind it.
	slices.SortFunc(hashes, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(ranks[b]), len(ranks[a])), cmp.Compare(ranks[a][0], ranks[b][0]))
	})
	found.add("E9", "", func() Finding {
		f := Finding{
			hangs: true,
			Message: fmt.Sprintf("%s and %s have different tuning files or environments (%s, %s): a library may choose one algorithm here and another there, and then waits for ever",
				ranksText(ranks[hashes[0]]), ranksText(ranks[hashes[1]]), hashes[0], hashes[1]),
			Advice: "start all ranks with the same variables and the same content of the files that these name; compare them on the first rank of each",
		}
		for _, hash := range hashes[1:] {
			f.Ranks = append(f.Ranks, ranks[hash]...)
		}
		slices.Sort(f.Ranks)
		return f
	})
}

// unknownSettings counts the ranks whose environment is not known.
func (m *model) unknownSettings() (ranks []int32) {
	for _, program := range m.w.Programs {
		if program.GetPlace().GetEnvironment() == "" {
			ranks = append(ranks, program.Rank)
		}
	}
	return ranks
}
