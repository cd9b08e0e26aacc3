package environment

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// steering are the beginnings of names of variables that steer libraries.
var steering = []string{"NCCL_", "RCCL_", "OMPI_MCA_", "MPIR_CVAR_", "MPICH_", "UCX_", "UCC_", "GLOO_", "FI_", "MSCCLPP_", "I_MPI_", "MV2_"}

// secret are parts of names whose values nobody should find in a table.
var secret = []string{"TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL"}

// Steering picks from an environment, "NAME=VALUE" each, the variables that steer
// communication libraries. Values of names that look like secrets are left out.
func Steering(environ []string) map[string]string {
	m := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if !slices.ContainsFunc(steering, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		if slices.ContainsFunc(secret, func(p string) bool { return strings.Contains(name, p) }) {
			value = "(left out)"
		}
		m[name] = value
	}
	return m
}

// maxFile is the most that is read of a file that a variable names, in bytes.
const maxFile = 16 << 20

// Hash tells environments apart by which communication libraries would choose
// differently: it is over the variables that Steering picks and the content of the
// files that they name (tuning tables, topologies, configurations). Where a name
// comes twice the last one counts, as for a process. Files that libraries read
// without a variable are not in it.
func Hash(environ []string) string {
	h := sha256.New()
	steering := Steering(environ)
	for _, name := range slices.Sorted(maps.Keys(steering)) {
		fmt.Fprintf(h, "%q=%q\n", name, steering[name])
		hashFile(h, steering[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// hashFile adds the content of a file, where the value names one.
func hashFile(h io.Writer, value string) {
	info, err := os.Stat(value)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	f, err := os.Open(value)
	if err != nil {
		fmt.Fprintln(h, "unreadable")
		return
	}
	defer f.Close()
	content := sha256.New()
	n, _ := io.Copy(content, io.LimitReader(f, maxFile))
	fmt.Fprintf(h, "%d of %d bytes %x\n", n, info.Size(), content.Sum(nil))
}
