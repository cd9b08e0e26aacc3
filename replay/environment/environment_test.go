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
