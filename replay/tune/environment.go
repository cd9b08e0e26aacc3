package tune

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Environment is where measurements were made.
type Environment struct {
	Hash      string // of the rest; made by Table.AddEnvironment
	Hardware  string // for people
	Libraries []Library
	// Variables of the environment that steer communication libraries, by name.
	Variables map[string]string
}

// Library is a communication library as it reports itself.
type Library struct{ Name, Version string }

// String names the libraries and the hardware on one line.
func (e Environment) String() string {
	var parts []string
	for _, l := range e.Libraries {
		parts = append(parts, strings.TrimSpace(l.Name+" "+l.Version))
	}
	if e.Hardware != "" {
		parts = append(parts, e.Hardware)
	}
	return strings.Join(parts, "; ")
}

// sealed is the environment in its normal form, with its hash.
func (e Environment) sealed() Environment {
	e.Libraries = slices.Clone(e.Libraries)
	slices.SortFunc(e.Libraries, func(a, b Library) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	e.Libraries = slices.Compact(e.Libraries)
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", e.Hardware)
	for _, l := range e.Libraries {
		fmt.Fprintf(h, "%q %q\n", l.Name, l.Version)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Variables)) {
		fmt.Fprintf(h, "%q=%q\n", name, e.Variables[name])
	}
	e.Hash = hex.EncodeToString(h.Sum(nil)[:6])
	return e
}
