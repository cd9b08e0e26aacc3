package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestFromEnvironment: what each engine sets, as its documentation lists it.
func TestFromEnvironment(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		want Task
		err  error
	}{
		{"torchrun", map[string]string{"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4", "MASTER_ADDR": "node0", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "job", "TORCHELASTIC_RESTART_COUNT": "0"},
			Task{Engine: "torchrun", Rank: 5, Size: 8, LocalRank: 1, LocalSize: 4, Leader: "node0:29501", Job: "job"}, nil},
		{"torchrun started again", map[string]string{"RANK": "0", "WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": "3"},
			Task{Engine: "torchrun", Size: 2, LocalRank: -1, Restarts: 3}, nil},
		{"openmpi", map[string]string{"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "MIXDOWN_RENDEZVOUS": "10.0.0.1:7"},
			Task{Engine: "openmpi", Rank: 2, Size: 4, LocalRank: 0, LocalSize: 2, Leader: "10.0.0.1:7"}, nil},
		{"mpich", map[string]string{"PMI_RANK": "1", "PMI_SIZE": "2", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"},
			Task{Engine: "mpich", Rank: 1, Size: 2, LocalRank: 1, LocalSize: 2}, nil},
		{"slurm", map[string]string{"SLURM_PROCID": "6", "SLURM_STEP_NUM_TASKS": "7", "SLURM_LOCALID": "2", "SLURM_NODEID": "1", "SLURM_STEP_TASKS_PER_NODE": "4,3", "SLURM_STEP_NODELIST": "gpu[07-08]", "SLURM_JOB_ID": "12005"},
			Task{Engine: "slurm", Rank: 6, Size: 7, LocalRank: 2, LocalSize: 3, Leader: "gpu07:29435", Job: "12005"}, nil},
		{"openmpi below slurm", map[string]string{"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4"},
			Task{Engine: "openmpi", Rank: 3, Size: 4, LocalRank: -1}, nil},
		{"srun, which speaks PMI too", map[string]string{"PMI_RANK": "1", "PMI_SIZE": "2", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_LOCALID": "0", "SLURM_NODEID": "1", "SLURM_STEP_TASKS_PER_NODE": "1(x2)", "SLURM_JOB_ID": "7"},
			Task{Engine: "slurm", Rank: 1, Size: 2, LocalRank: 0, LocalSize: 1, Job: "7"}, nil},
		{"MPICH's mpirun within Slurm, whose srun starts one process a node", map[string]string{"PMI_RANK": "5", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "4", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_JOB_ID": "7"},
			Task{Engine: "mpich", Rank: 5, Size: 8, LocalRank: 1, LocalSize: 4}, nil},
		{"another's variable of a name of torchrun's", map[string]string{"RANK": "colonel", "SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"},
			Task{Engine: "slurm", Rank: 1, Size: 2, LocalRank: -1}, nil},
		{"kubernetes", map[string]string{"JOB_COMPLETION_INDEX": "3", "JOB_COMPLETIONS": "4"},
			Task{Engine: "kubernetes", Rank: 3, Size: 4, LocalRank: -1}, nil},
		{"kubernetes without its size", map[string]string{"JOB_COMPLETION_INDEX": "3"}, Task{}, ErrEnvironment},
		{"a batch script, no task", map[string]string{"SLURM_PROCID": "0", "SLURM_JOB_ID": "7"}, Task{}, ErrNoEngine},
		{"nothing", nil, Task{}, ErrNoEngine},
		{"no number", map[string]string{"RANK": "first", "WORLD_SIZE": "8"}, Task{}, ErrEnvironment},
		{"a rank too high", map[string]string{"PMI_RANK": "2", "PMI_SIZE": "2"}, Task{}, ErrEnvironment},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := FromEnvironment(func(name string) string { return c.env[name] })
			if !errors.Is(err, c.err) {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFirstNode: Slurm's lists of hosts.
func TestFirstNode(t *testing.T) {
	for list, want := range map[string]string{
		"node1": "node1", "node1,node2": "node1", "gpu[07-09,12],login1": "gpu07", "a[3]": "a3", "rack[1-2]n[05-08]": "rack1n05",
		"n[1-2]-ib,x": "n1-ib", "": "", "broken[": "", "broken[1-2": "", "n[]": "",
	} {
		if got := firstNode(list); got != want {
			t.Errorf("firstNode(%q) = %q, want %q", list, got, want)
		}
	}
}

// TestTasksPerNode: 2 nodes of 4 tasks, and one of 3.
func TestTasksPerNode(t *testing.T) {
	for node, want := range map[string]int{"0": 4, "1": 4, "2": 3, "3": 0, "": 0, "-1": 0} {
		env := map[string]string{"SLURM_NODEID": node, "SLURM_STEP_TASKS_PER_NODE": "4(x2),3"}
		if got := slurmTasksHere(func(name string) string { return env[name] }); got != want {
			t.Errorf("node %q has %d tasks, want %d", node, got, want)
		}
	}
}

// TestClock: another host's clock is 1 s ahead; questions take 40 us there and back, some
// far longer on one way. The estimate is never off by more than it says.
func TestClock(t *testing.T) {
	const ahead = int64(time.Second)
	var c Clock
	if _, _, known := c.Offset(); known {
		t.Error("a clock is known that was never asked for")
	}
	for i, ways := range [][2]int64{{900_000, 10_000}, {20_000, 20_000}, {10_000, 5_000_000}, {25_000, 30_000}} {
		asked := int64(i) * 10_000_000
		c.Observe(asked, asked+ways[0]+ahead, asked+ways[0]+ways[1])
		offset, bound, known := c.Offset()
		if off := offset.Nanoseconds() - ahead; !known || max(off, -off) > bound.Nanoseconds() {
			t.Errorf("after %d answers: %v ahead within %v, known %t; it is %v", i+1, offset, bound, known, time.Duration(ahead))
		}
	}
	if got := c.RoundTrip(); got != 40*time.Microsecond {
		t.Errorf("round trip %v, want 40us", got)
	}
}

// TestSlots: ranks are shared out evenly where hosts do not say how many they take.
func TestSlots(t *testing.T) {
	for _, c := range []struct {
		hosts []string
		n     int
		want  []string
	}{
		{[]string{"a", "b"}, 8, []string{"a:4", "b:4"}},
		{[]string{"a", "b", "c"}, 8, []string{"a:3", "b:3", "c:2"}},
		{[]string{"a:6", "b"}, 8, []string{"a:6", "b:2"}},
		{[]string{"a:4", "b:4"}, 8, []string{"a:4", "b:4"}},
		{[]string{"a:4", "b:4"}, 9, nil},
		{[]string{"a:8", "b"}, 8, []string{"a:8"}},
		{[]string{"a:4", "b:4"}, 2, []string{"a:2"}},
		{[]string{"a:none"}, 8, nil},
		{[]string{"a", "b", "c"}, 2, []string{"a:1", "b:1"}},
	} {
		got, err := Engine{Name: "mpirun", Hosts: c.hosts}.slots(c.n)
		if (err != nil) != (c.want == nil) || err != nil && !errors.Is(err, ErrEngine) {
			t.Errorf("%v for %d: %v", c.hosts, c.n, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v for %d: %s", c.hosts, c.n, diff)
		}
	}
}

// TestCommand: what srun and mpirun are told.
func TestCommand(t *testing.T) {
	slurm := Engine{Name: "slurm", Leader: "login1", Mixdown: "/opt/mixdown", Args: []string{"--exclusive"}}
	mpirun := Engine{Name: "mpirun", Leader: "10.0.0.1", Mixdown: "/opt/mixdown", Hosts: []string{"a", "b"}, Interface: "ib0"}
	for _, c := range []struct {
		engine   Engine
		launcher string
		want     []string
	}{
		{slurm, "direct", []string{"srun", "--ntasks", "4", "--kill-on-bad-exit=0", "--mpi=none", "--exclusive", "/opt/mixdown", "join", "login1:7"}},
		{slurm, "openmpi", []string{"srun", "--ntasks", "4", "--kill-on-bad-exit=0", "--mpi=pmix", "--exclusive", "/opt/mixdown", "join", "login1:7"}},
		{slurm, "mpich", []string{"srun", "--ntasks", "4", "--kill-on-bad-exit=0", "--mpi=pmi2", "--exclusive", "/opt/mixdown", "join", "login1:7"}},
		{mpirun, "openmpi", []string{"mpirun.openmpi", "-np", "4", "--oversubscribe", "--bind-to", "none", "-x", "MIXDOWN_JOIN_TOKEN", "--host", "a:2,b:2",
			"--mca", "btl_tcp_if_include", "ib0", "--mca", "oob_tcp_if_include", "ib0", "/opt/mixdown", "join", "10.0.0.1:7", "--interface", "ib0"}},
		{mpirun, "mpich", []string{"mpirun.mpich", "-np", "4", "-hosts", "a:2,b:2", "/opt/mixdown", "join", "10.0.0.1:7", "--interface", "ib0"}},
	} {
		got, err := c.engine.Command(c.launcher, 4, 7)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s for %s: %s", c.engine.Name, c.launcher, diff)
		}
	}
	slurm.Hosts = []string{"a"}
	if _, err := slurm.Command("direct", 4, 7); !errors.Is(err, ErrEngine) {
		t.Errorf("hosts for srun: %v", err)
	}
}
