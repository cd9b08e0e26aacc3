package backends

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"mixdown/replay/launch"
)

// Operation is how a backend does one operation.
type Operation struct {
	Op         string `json:"op"`
	Native     bool   `json:"native"`                // a call of the library
	ComposedOf string `json:"composed_of,omitempty"` // else what its module makes it of
}

// backend is what the command knows of one.
type backend struct {
	launch.Backend
	Operations []Operation `json:"operations,omitempty"`
}

// probeTimeout bounds how long a library may take to answer.
const probeTimeout = 20 * time.Second

// operations asks the backend's module. What can't run here has none.
func operations(ctx context.Context, worker launch.Worker, b launch.Backend) []Operation {
	if !b.Available {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, worker.Path, "--probe", b.Name).Output()
	if err != nil {
		return nil
	}
	var said struct {
		Operations []Operation `json:"operations"`
	}
	if json.Unmarshal(out, &said) != nil {
		return nil
	}
	return said.Operations
}

// writeOperations prints a row for each operation and a column for each backend,
// and below it what the composed ones are made of.
func writeOperations(w io.Writer, list []backend) error {
	list = slices.DeleteFunc(slices.Clone(list), func(b backend) bool { return len(b.Operations) == 0 })
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
			i := slices.IndexFunc(b.Operations, func(x Operation) bool { return x.Op == o.Op })
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
