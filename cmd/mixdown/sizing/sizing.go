// Package sizing is the flags that say how large a model is, for every verb that
// tells what ranks hold.
package sizing

import (
	"fmt"
	"math/big"
	"strings"

	"github.com/spf13/cobra"

	"mixdown/cmd/mixdown/cli"
	"mixdown/replay/memory"
	"mixdown/replay/sharding"
)

// Options are the flags about the model. What is empty or 0 is not known.
type Options struct {
	Parameters      string
	ActivationBytes string
	DataParallel    int
	Optimizer       string
}

// AddFlags declares the flags.
func (o *Options) AddFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.Parameters, "params", "", "`NUMBER` of the model's parameters, such as 52e9 or 52B; with tensor parallelism those of one of its ranks")
	f.StringVar(&o.ActivationBytes, "activation-bytes", "", "`BYTES` that one chunk keeps for one micro-batch, such as 128MiB")
	f.IntVar(&o.DataParallel, "data-parallel", 0, "`RANKS` that hold the same stages")
	f.StringVar(&o.Optimizer, "optimizer", "", "`NAME` of what sets the bytes per parameter: "+optimizerNames()+"; default adam")
}

// Model is what the flags say, nil if they say nothing.
func (o *Options) Model(variant sharding.Variant, buffers sharding.Options) (*memory.Model, error) {
	if *o == (Options{}) {
		return nil, nil
	}
	m := &memory.Model{Sharding: variant, Buffers: buffers}
	for _, f := range []struct {
		flag, text string
		units      map[string]int64
		to         **int64
	}{
		{"--params", o.Parameters, map[string]int64{"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}, &m.Parameters},
		{"--activation-bytes", o.ActivationBytes, byteUnits, &m.Activation},
	} {
		if f.text == "" {
			continue
		}
		n, err := parseQuantity(f.text, f.units)
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", cli.ErrUsage, f.flag, err)
		}
		*f.to = &n
	}
	if o.DataParallel < 0 {
		return nil, fmt.Errorf("%w: --data-parallel %d: expected a number of ranks", cli.ErrUsage, o.DataParallel)
	}
	if o.DataParallel > 0 {
		m.DataParallel = &o.DataParallel
	}
	if o.Optimizer != "" {
		var err error
		if m.Optimizer, err = memory.FindOptimizer(o.Optimizer); err != nil {
			return nil, fmt.Errorf("%w: %w", cli.ErrUsage, err)
		}
	}
	return m, nil
}

var byteUnits = map[string]int64{"kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "b": 1}

// ParseBytes reads a size such as 80GiB.
func ParseBytes(text string) (int64, error) { return parseQuantity(text, byteUnits) }

// parseQuantity reads a whole number written as 52e9, 1.5B or 128MiB.
func parseQuantity(text string, units map[string]int64) (int64, error) {
	digits := strings.TrimRight(text, "abcdfghijklmnopqrstuvwxyzABCDFGHIJKLMNOPQRSTUVWXYZ ") // all letters but e
	unit := int64(1)
	if suffix := strings.ToLower(strings.TrimSpace(text[len(digits):])); suffix != "" {
		var ok bool
		if unit, ok = units[suffix]; !ok {
			return 0, fmt.Errorf("%q: unknown unit %q", text, suffix)
		}
	}
	if len(digits) > 40 || strings.ContainsFunc(digits, func(c rune) bool { return !strings.ContainsRune("0123456789.eE+-", c) }) || exponent(digits) > 20 {
		return 0, fmt.Errorf("%q is not a number that is read here", text)
	}
	r, ok := new(big.Rat).SetString(digits)
	if !ok || r.Sign() < 0 {
		return 0, fmt.Errorf("%q is not a number (write it as 52e9 or with a unit)", text)
	}
	r.Mul(r, new(big.Rat).SetInt64(unit))
	if !r.IsInt() || !r.Num().IsInt64() {
		return 0, fmt.Errorf("%q is not a whole number below 2^63", text)
	}
	return r.Num().Int64(), nil
}

// exponent is the size of a number's exponent of ten, so that 1e999999999 is
// refused before it is computed.
func exponent(digits string) int {
	_, after, ok := strings.Cut(strings.ToLower(digits), "e")
	if !ok {
		return 0
	}
	n := 0
	for _, c := range strings.TrimLeft(after, "+-") {
		if n = 10*n + int(c-'0'); n > 1000 {
			break
		}
	}
	return n
}

func optimizerNames() string {
	var names []string
	for _, o := range memory.Optimizers() {
		names = append(names, o.Name)
	}
	return strings.Join(names, ", ")
}
