package algorithms_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"mixdown/ingest/comm"
	"mixdown/replay/tune/algorithms"
)

func TestParseNCCL(t *testing.T) {
	c, err := algorithms.ParseNCCL(comm.AllReduce, "Ring/LL128/ch=8")
	if err != nil || c != (algorithms.NCCLChoice{Algorithm: "ring", Protocol: "ll128", Channels: 8}) || c.String() != "ring/ll128/ch=8" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, v := range []string{"", "ring", "ring/ll/8", "ring/ll/ch=0", "ring/ll/ch=65", "ring/ll/ch=2/x", "pat/simple", "nvls/ll", "ring/ll1"} {
		if c, err := algorithms.ParseNCCL(comm.AllReduce, v); err == nil {
			t.Errorf("%q: %+v, want an error", v, c)
		}
	}
	if _, err := algorithms.ParseNCCL(comm.Reduce, "tree/ll"); err == nil {
		t.Error("NCCL has no tree for reduce")
	}
}

func TestMPICHPowersOfTwo(t *testing.T) {
	c, _ := algorithms.MPICH(comm.AllGather)
	if !c.Has("recursive_doubling", 8) || c.Has("recursive_doubling", 6) || !c.Has("ring", 6) || c.Has("smp", 8) {
		t.Errorf("%+v", c)
	}
}

// TestInstalledMPICHAgrees: the leaves that are written are those of the installed
// MPICH.
func TestInstalledMPICHAgrees(t *testing.T) {
	found, _ := filepath.Glob("/usr/lib/*/libmpich.so")
	if len(found) == 0 {
		t.Skip("libmpich is not here")
	}
	data, err := os.ReadFile(found[0])
	if err != nil {
		t.Skip(err)
	}
	for _, op := range comm.Ops() {
		c, ok := algorithms.MPICH(op)
		if !ok {
			continue
		}
		for _, a := range c.Algorithms {
			if !bytes.Contains(data, append([]byte(c.Leaf(a)), 0)) {
				t.Errorf("%s does not know %s", found[0], c.Leaf(a))
			}
		}
	}
}

func TestParseUCC(t *testing.T) {
	for _, v := range []string{"ucp", "ucp/knomial", "nccl", "cuda/nvls"} {
		if _, _, err := algorithms.ParseUCC(comm.AllReduce, v); err != nil {
			t.Errorf("%q: %v", v, err)
		}
	}
	for _, v := range []string{"", "tcp", "ucp/bruck", "nccl/ring"} {
		if _, _, err := algorithms.ParseUCC(comm.AllReduce, v); err == nil {
			t.Errorf("%q: no error", v)
		}
	}
}
