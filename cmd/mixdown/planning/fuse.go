package planning

import (
	"fmt"
	"strings"

	"mixdown/cmd/mixdown/cli"
	"mixdown/replay/mix"
	"mixdown/replay/plan"
)

// fuseLimit reads --fuse, 0 where it was not given.
func (o *Options) fuseLimit() (int64, error) {
	if o.Fuse == "" {
		return 0, nil
	}
	n, err := mix.ParseSize(strings.TrimPrefix(o.Fuse, "<="))
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%w: --fuse %q: expected the size up to which all_reduces are fused, such as 1MiB", cli.ErrUsage, o.Fuse)
	}
	return n, nil
}

// addFused adds the workload with small all_reduces fused, alone and with each mix.
func (o *Options) addFused(p *Plans, most int64, mixes []mix.Mix) error {
	if most == 0 {
		return nil
	}
	fused, saved := plan.Fuse(p.Workload, most)
	if saved == 0 {
		return fmt.Errorf("--fuse %s: %w: no two neighbouring all_reduces of a group are that small and need not wait for each other", o.Fuse, plan.ErrNothingToFuse)
	}
	name := "fuse<=" + strings.TrimPrefix(o.Fuse, "<=")
	for _, m := range append([]mix.Mix{{Text: mix.Traced}}, mixes...) {
		title := name
		if !m.IsTraced() {
			title += " with " + m.Text
		}
		v, err := mix.Decide(fused, m, title, p.Stand)
		if err != nil {
			return err
		}
		if m.IsTraced() {
			v.Mix = "*=" + p.Stand
		}
		p.Variants = append(p.Variants, v)
		p.Fused[title] = true
	}
	return nil
}
