package critical

import (
	"iter"

	"mixdown/analyze/collective"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// NodeKind is what kind of moment a node is.
type NodeKind uint8

// The kinds of nodes.
const (
	NodeOrigin    NodeKind = iota // the first rank starts its step: node 0, no rank
	NodeRankStart                 // a rank starts its step
	NodeHost                      // the host launches something, begins to wait, or ends its step
	NodeHostWait                  // a blocking call returns
	NodeCompute                   // a kernel ends
	NodeMemory                    // a copy or set ends
	NodeArrival                   // communication starts on a rank: it has arrived
	NodeJoin                      // the last member of a collective has arrived
	NodeWait                      // a member's wait ends, where clocks cannot be compared
	NodeTransfer                  // communication ends on a rank
)

// Node is one moment of a rank. Times are ns since the start of the step.
type Node struct {
	Kind NodeKind
	Rank int // index into Run.Ranks; of the last member for a join; -1 for the origin
	// Start is when the work that ends with the node started; End the recorded
	// moment; Own how much later it came than the last of its dependencies.
	Start, End, Own int64
	Event           int // index into the rank's events, -1 when it is no event's
	Operation       int // index into the rank's operations, -1 when it is none's
}

// Graph is the dependency graph of one step over all ranks, in columns.
type Graph struct {
	run     *trace.Run
	match   *collective.Matching
	step    string
	windows []Window
	base    []int64 // rank index -> ns on its clock that are 0 in the graph
	start   int64   // ns, absolute: 0 of the graph on the first rank's clock
	aligned bool

	kind      []NodeKind
	rank      []int32
	begin     []int64
	end       []int64
	own       []int64
	event     []int32
	operation []int32
	class     []int32 // of transfers, -1 else
	flags     []flag

	classes []Class
	classOf map[classKey]int32

	from, to []int32 // edges while the graph is built
	edgeLag  []int32

	depAt []int32 // node -> first of its dependencies; one more than nodes
	deps  []int32
	lags  []int32 // ns, 0 or negative
	order []int32 // nodes, each after its dependencies

	diags    *diagnostic.Set
	backward int
	inferred int
}

// flag is a remark about a node.
type flag uint8

const (
	// beforeStep: launched before the step and still running in it.
	beforeStep flag = 1 << iota
	// unsplit: a transfer from which the wait for others could not be told.
	unsplit
)

// Len is the number of nodes.
func (g *Graph) Len() int { return len(g.kind) }

// Edges is the number of dependencies.
func (g *Graph) Edges() int { return len(g.deps) }

// Node returns node i.
func (g *Graph) Node(i int) Node {
	return Node{
		Kind: g.kind[i], Rank: int(g.rank[i]), Start: g.begin[i], End: g.end[i], Own: g.own[i],
		Event: int(g.event[i]), Operation: int(g.operation[i]),
	}
}

// Deps yields the nodes that node i depends on, each with its lag in ns.
func (g *Graph) Deps(i int) iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		for e := g.depAt[i]; e < g.depAt[i+1]; e++ {
			if !yield(int(g.deps[e]), int64(g.lags[e])) {
				return
			}
		}
	}
}

// add makes a node that ends at end, in ns since the start of the step.
func (g *Graph) add(kind NodeKind, rank int, begin, end int64) int32 {
	g.kind = append(g.kind, kind)
	g.rank = append(g.rank, int32(rank))
	g.begin = append(g.begin, min(begin, end))
	g.end = append(g.end, end)
	g.event = append(g.event, -1)
	g.operation = append(g.operation, -1)
	g.class = append(g.class, -1)
	g.flags = append(g.flags, 0)
	return int32(len(g.kind) - 1)
}

// rounding is by how much, in ns, two moments of one clock may seem out of
// order: older profilers write whole microseconds, start and duration rounded
// each for itself.
const rounding = 2_000

// slack is by how much, in ns, moments of the host and of the device, or of two
// ranks, may seem out of order: their clocks are converted, not shared.
const slack = 20_000

// link makes node to depend on node from. It reports false, and links nothing,
// when from ended more than limit ns after to.
func (g *Graph) link(from, to int32, limit int64) bool {
	lag := min(g.end[to]-g.end[from], 0)
	if lag < -limit || from == to {
		return false
	}
	g.from = append(g.from, from)
	g.to = append(g.to, to)
	g.edgeLag = append(g.edgeLag, int32(lag))
	return true
}

// reject counts a dependency that the times contradict.
func (g *Graph) reject(code string, rank int, offset int64, format string, args ...any) {
	g.backward++
	g.diags.Addf(code, g.run.Ranks[rank].Rank, offset, format, args...)
}
