package backends

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"mixdown/replay/launch"
)

// writeOperations prints a row for each operation and a column for each backend,
// and below it what the composed ones are made of.
func writeOperations(w io.Writer, list []launch.Backend) error {
	list = slices.DeleteFunc(slices.Clone(list), func(b launch.Backend) bool { return len(b.Operations) == 0 })
	if len(list) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(table, "\noperation")
	for _, b := range list {
		fmt.Fprintf(table, "\t%s", b.Name)
	}
	fmt.Fprintln(table)
	var composed []string
	for _, o := range list[0].Operations {
		fmt.Fprint(table, o.Op)
		for _, b := range list {
			i := slices.IndexFunc(b.Operations, func(x launch.Operation) bool { return x.Op == o.Op })
			switch {
			case i < 0:
				fmt.Fprint(table, "\t-")
			case b.Operations[i].Native:
				fmt.Fprint(table, "\tnative")
			default:
				fmt.Fprint(table, "\tcomposed")
				of := cmp.Or(b.Operations[i].ComposedOf, "other operations")
				composed = append(composed, fmt.Sprintf("%s on %s is composed of %s", o.Op, b.Name, of))
			}
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, line := range composed {
		if _, err := fmt.Fprintln(w, strings.TrimSpace(line)); err != nil {
			return err
		}
	}
	return nil
}
