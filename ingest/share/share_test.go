package share

import (
	"errors"
	"strings"
	"testing"
)

func environment(vars string) func(string) (string, bool) {
	m := map[string]string{}
	for _, v := range strings.Fields(vars) {
		name, value, _ := strings.Cut(v, "=")
		m[name] = value
	}
	return func(name string) (string, bool) { v, ok := m[name]; return v, ok }
}

// The variables are as the engines' documentation has them; those of Slurm as a
// real srun, and a real batch script, set them.
func TestFromEnvironment(t *testing.T) {
	for vars, want := range map[string]Share{
		"":                      {},
		"RANK=3 WORLD_SIZE=8":   {3, 8, "RANK, WORLD_SIZE"},
		"RANK= WORLD_SIZE=8":    {},
		"PMI_RANK=0 PMI_SIZE=2": {0, 2, "PMI_RANK, PMI_SIZE"},
		"SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_JOB_ID=7":                                                        {},
		"SLURM_PROCID=2 SLURM_NTASKS=4 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4":                                {2, 4, "SLURM_PROCID, SLURM_STEP_NUM_TASKS"},
		"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 PMIX_RANK=1":                                           {1, 2, "OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE"},
		"RANK=3 PMI_RANK=0 PMI_SIZE=2":                                                                        {0, 2, "PMI_RANK, PMI_SIZE"},
		"JOB_COMPLETION_INDEX=4 JOB_COMPLETIONS=5":                                                            {4, 5, "JOB_COMPLETION_INDEX, JOB_COMPLETIONS"},
		"RANK=5 WORLD_SIZE=8 SLURM_PROCID=1 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=2":                           {5, 8, "RANK, WORLD_SIZE"},
		"OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=8 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=1 SLURM_STEP_ID=1": {1, 8, "OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE"},
	} {
		if got, err := FromEnvironment(environment(vars)); got != want || err != nil {
			t.Errorf("%s: %+v, %v", vars, got, err)
		}
	}
	for _, vars := range []string{
		"JOB_COMPLETION_INDEX=4", "RANK=3", "RANK=8 WORLD_SIZE=8", "RANK=-1 WORLD_SIZE=8", "RANK=x WORLD_SIZE=8", "PMI_RANK=0 PMI_SIZE=0",
	} {
		_, err := FromEnvironment(environment(vars))
		if !errors.Is(err, ErrSyntax) || !strings.Contains(err.Error(), strings.Split(vars, "=")[0]) || !strings.Contains(err.Error(), "--share") {
			t.Errorf("%s: %v", vars, err)
		}
	}
}

func TestParse(t *testing.T) {
	slurm := environment("SLURM_PROCID=2 SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4")
	for text, want := range map[string]string{"auto": "2/4", "": "2/4", "all": "all", "0/3": "0/3", "0/1": "all"} {
		if got, err := Parse(text, slurm); got.String() != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"3/3", "-1/3", "1", "/", "1/2/3", "a/b", "0/0"} {
		if got, err := Parse(text, slurm); !errors.Is(err, ErrSyntax) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// Every file is in exactly one share, and shares differ by one file at most.
func TestDealt(t *testing.T) {
	for n := range 40 {
		for count := 1; count < 12; count++ {
			owners := make([]int, n)
			least, most := n, 0
			for index := range count {
				s := Share{Index: index, Count: count}
				have := 0
				for i := range n {
					if s.Has(i) {
						owners[i]++
						have++
					}
				}
				if have != s.Of(n) {
					t.Fatalf("%v of %d: has %d, says %d", s, n, have, s.Of(n))
				}
				least, most = min(least, have), max(most, have)
			}
			for i, o := range owners {
				if o != 1 {
					t.Fatalf("file %d of %d is in %d of %d shares", i, n, o, count)
				}
			}
			if most-least > 1 {
				t.Fatalf("%d files in %d shares: %d to %d", n, count, least, most)
			}
		}
	}
}
