package imports

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"mixdown/ingest/comm"
)

// opPattern are the names of operations in file names, the longer first.
var opPattern = regexp.MustCompile(`all_?reduce|all_?gather|reduce_?scatter|all_?to_?allv?|broadcast|sendrecv|gather|scatter|reduce`)

// opInName finds an operation in a file's name, "all_reduce_8gpu.log"; "" when
// there is none.
func opInName(name string) comm.Op {
	found := opPattern.FindString(strings.ToLower(filepath.Base(name)))
	if found == "" {
		return ""
	}
	op, _ := ncclOp(found)
	return op
}

func missingOp() error {
	return fmt.Errorf("%w: which operation was measured: say so with --op", ErrMissing)
}
