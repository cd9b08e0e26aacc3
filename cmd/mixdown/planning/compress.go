package planning

import (
	"fmt"

	"mixdown/replay/mix"
)

// parseCompressions reads --compress, before anything else is read.
func (o *Options) parseCompressions() ([]mix.Compression, error) {
	var list []mix.Compression
	for _, text := range o.Compress {
		c, err := mix.ParseCompression(text)
		if err != nil {
			return nil, fmt.Errorf("--compress: %w", err)
		}
		list = append(list, c)
	}
	return list, nil
}

// addCompressed adds a variant for each compression, alone and with each mix.
func (o *Options) addCompressed(p *Plans, list []mix.Compression, mixes []mix.Mix) error {
	for _, c := range list {
		compressed, applied, diags := mix.Compress(p.Workload, c)
		p.Diagnostics.Merge(diags)
		if applied == 0 {
			why := "no operation matches"
			if found := diags.List(); len(found) > 0 {
				why = found[0].Example
			}
			return fmt.Errorf("--compress %s: %w: %s", c.Text, mix.ErrNothingToCompress, why)
		}
		name := "compress " + c.Text
		for _, m := range append([]mix.Mix{{Text: mix.Traced}}, mixes...) {
			title := name
			if !m.IsTraced() {
				title += " with " + m.Text
			}
			v, err := mix.Decide(compressed, m, title, p.Stand)
			if err != nil {
				return err
			}
			if m.IsTraced() {
				v.Mix = "*=" + p.Stand
			}
			p.Variants = append(p.Variants, v)
		}
	}
	return nil
}
