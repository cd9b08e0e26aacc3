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
var steering = []string{"NCCL_", "RCCL_", "OMPI_MCA_", "MPIR_CVAR_", "MPICH_", "MIXDOWN_MPI_", "UCX_", "UCC_", "GLOO_", "FI_", "MSCCLPP_", "I_MPI_", "MV2_"}

// own are the beginnings of names by which Open MPI's mpirun tells each rank who it is,
// and steers its own daemons, other than the first: no communication is chosen by them.
var own = []string{"OMPI_MCA_orte_", "OMPI_MCA_ess", "OMPI_MCA_initial_wdir", "OMPI_MCA_plm", "OMPI_MCA_routed", "OMPI_MCA_oob", "OMPI_MCA_rmaps", "OMPI_MCA_pmix"}

// ofHost are parts of names of variables that name a host's own devices, and may well
// differ between hosts.
var ofHost = []string{"IFNAME", "if_include", "if_exclude", "NET_DEVICES", "IB_HCA", "IFACE", "HOSTID", "HOSTNAME"}

// secret are parts of names whose values nobody should find in a table.
var secret = []string{"TOKEN", "SECRET", "PASSWORD", "KEY", "CREDENTIAL"}

// Steering picks from an environment, "NAME=VALUE" each, the variables that steer
// communication libraries. Values of names that look like secrets are left out.
func Steering(environ []string) map[string]string {
	m := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		begins := func(p string) bool { return strings.HasPrefix(name, p) }
		if !slices.ContainsFunc(steering, begins) || slices.ContainsFunc(own, begins) {
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

// Fingerprints are, by name, of the variables that all ranks of a job should have alike:
// those that Steering picks without those that name a host's own devices. Each is of the
// value and the content of the file that it names.
func Fingerprints(environ []string) map[string]string {
	m := map[string]string{}
	for name, value := range Steering(environ) {
		if slices.ContainsFunc(ofHost, func(part string) bool { return strings.Contains(name, part) }) {
			continue
		}
		h := sha256.New()
		fmt.Fprintf(h, "%q\n", value)
		hashFile(h, value)
		m[name] = hex.EncodeToString(h.Sum(nil)[:8])
	}
	return m
}
