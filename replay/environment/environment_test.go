package environment_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mixdown/replay/environment"
)

func TestSteeringHidesSecrets(t *testing.T) {
	got := environment.Steering([]string{"NCCL_ALGO=Ring", "HOME=/root", "UCX_AUTH_TOKEN=x", "OMPI_MCA_coll=^han"})
	want := map[string]string{"NCCL_ALGO": "Ring", "UCX_AUTH_TOKEN": "(left out)", "OMPI_MCA_coll": "^han"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestHash: equal for what steers nothing and for another order, different for
// another value and for another content of a file that is named.
func TestHash(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tuner.csv")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("allreduce,ring")
	base := environment.Hash([]string{"NCCL_TUNER_CONFIG_FILE=" + file, "NCCL_ALGO=Ring"})
	if got := environment.Hash([]string{"HOME=/x", "NCCL_ALGO=Tree", "NCCL_ALGO=Ring", "NCCL_TUNER_CONFIG_FILE=" + file}); got != base {
		t.Errorf("%s and %s of the same", got, base)
	}
	if got := environment.Hash([]string{"NCCL_TUNER_CONFIG_FILE=" + file, "NCCL_ALGO=Tree"}); got == base {
		t.Error("another value, the same hash")
	}
	write("allreduce,tree")
	if got := environment.Hash([]string{"NCCL_TUNER_CONFIG_FILE=" + file, "NCCL_ALGO=Ring"}); got == base {
		t.Error("another content, the same hash")
	}
	if len(base) != 16 {
		t.Errorf("hash %q", base)
	}
}

// TestFingerprints: what mpirun tells each rank, and what names a host's devices, is no
// difference between ranks; a tuning file's content is.
func TestFingerprints(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rules")
	environ := func(rank, card, algorithm string) []string {
		return []string{"OMPI_MCA_ess_base_vpid=" + rank, "OMPI_MCA_orte_ess_node_rank=" + rank, "UCX_NET_DEVICES=" + card,
			"NCCL_SOCKET_IFNAME=" + card, "OMPI_MCA_btl_tcp_if_include=" + card, "NCCL_ALGO=" + algorithm, "OMPI_MCA_coll_tuned_dynamic_rules_filename=" + file, "PATH=/bin"}
	}
	if err := os.WriteFile(file, []byte("2"), 0o644); err != nil {
		t.Fatal(err)
	}
	base := environment.Fingerprints(environ("0", "eth0", "Ring"))
	if len(base) != 2 {
		t.Errorf("fingerprints of %v, expected two", base)
	}
	if diff := cmp.Diff(base, environment.Fingerprints(environ("1", "ib0", "Ring"))); diff != "" {
		t.Errorf("another rank and host (-first +second)\n%s", diff)
	}
	if got := environment.Fingerprints(environ("0", "eth0", "Tree")); got["NCCL_ALGO"] == base["NCCL_ALGO"] {
		t.Error("another algorithm, the same fingerprint")
	}
	if err := os.WriteFile(file, []byte("3"), 0o644); err != nil {
		t.Fatal(err)
	}
	name := "OMPI_MCA_coll_tuned_dynamic_rules_filename"
	if got := environment.Fingerprints(environ("0", "eth0", "Ring")); got[name] == base[name] {
		t.Error("other rules in the file, the same fingerprint")
	}
}
