package exports

import (
	"bytes"
	"fmt"
	"math"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/tune/algorithms"
)

// MPICH's selection tree (src/mpi/coll/src/csel.c) is JSON of objects alone: keys
// are conditions, children are tried in order, and every branch must be complete.
// A file replaces the whole built-in tree, so that one, of the same version, is
// edited: in groups of the measured sizes our choice, else what was there.

// maxMPICH is the largest size in a condition: MPICH reads it with atoi.
const maxMPICH = math.MaxInt32

func writeMPICH(j *job) (*Output, error) {
	root, err := mpichBase(j.Base)
	if err != nil {
		return nil, err
	}
	changed := 0
	byOp := map[comm.Op][]group{}
	var order []comm.Op
	for _, g := range groups(j.list) {
		if byOp[g.op] == nil {
			order = append(order, g.op)
		}
		byOp[g.op] = append(byOp[g.op], g)
	}
	for _, op := range order {
		c, ok := algorithms.MPICH(op)
		if !ok {
			j.out.warn("%s is left out: MPICH has no choice for it", op)
			continue
		}
		n, err := j.editMPICH(root, c, byOp[op])
		if err != nil {
			return nil, err
		}
		changed += n
	}
	if changed == 0 {
		return nil, fmt.Errorf("%w: no algorithm of MPICH's was chosen", ErrNothing)
	}
	var b strings.Builder
	root.write(&b, "")
	b.WriteByte('\n')
	j.out.Files = []File{{"mpich.json", []byte(b.String())}}
	j.out.Apply = []string{"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE=FILE MPIR_CVAR_DEVICE_COLLECTIVES=none (the device's own would come before)"}
	j.out.Proof = []string{
		"a file that can't be read makes MPI_Init fail: the variable is seen",
		"mixdown tune with and without the variables: the times change where the algorithm does",
	}
	return j.out, nil
}

// mpichStart is how the tree of algorithms begins, without blanks.
var mpichStart = []byte(`{"collective=`)

// mpichBase reads the tree to edit: JSON, or a libmpich that has it inside.
func mpichBase(data []byte) (*tree, error) {
	if len(data) == 0 {
		return nil, fmt.Errorf("%w: MPICH needs a whole tree: give the one to edit with --base, generic.json of its sources (maint/tuning/coll/mpir) or its libmpich.so, which has it inside", ErrInexpressible)
	}
	if !bytes.HasPrefix(data, []byte("\x7fELF")) {
		root, err := parseTree(data)
		if err != nil {
			return nil, fmt.Errorf("%w: --base is no selection tree: %w", ErrInexpressible, err)
		}
		return root, checkMPICH(root)
	}
	for rest := data; ; {
		i := bytes.Index(rest, mpichStart)
		if i < 0 {
			return nil, fmt.Errorf("%w: no selection tree in --base: is it libmpich.so of MPICH 4 or later?", ErrInexpressible)
		}
		rest = rest[i:]
		end := bytes.IndexByte(rest, 0)
		if end < 0 {
			end = len(rest)
		}
		if root, err := parseTree(rest[:end]); err == nil && checkMPICH(root) == nil {
			return root, nil
		}
		rest = rest[len(mpichStart):]
	}
}

// checkMPICH tells the tree of algorithms from those of compositions.
func checkMPICH(root *tree) error {
	all := root.child("collective=allreduce")
	if all == nil || all.child("comm_type=intra") == nil || root.child("collective=barrier") == nil {
		return fmt.Errorf("%w: --base has no comm_type=intra for collective=allreduce, or no collective=barrier", ErrInexpressible)
	}
	var names func(t *tree) bool
	names = func(t *tree) bool {
		if strings.HasPrefix(t.key, "algorithm=MPIR_Allreduce_intra") {
			return true
		}
		for _, c := range t.children {
			if names(c) {
				return true
			}
		}
		return false
	}
	if !names(all) {
		return fmt.Errorf("%w: --base is a tree of compositions, not of algorithms", ErrInexpressible)
	}
	return nil
}

// editMPICH puts the decisions about a collective into the tree, and says how many
// sizes of groups have any.
func (j *job) editMPICH(root *tree, c algorithms.MPICHCollective, list []group) (int, error) {
	collective := root.child("collective=" + c.Name)
	if collective == nil {
		return 0, fmt.Errorf("%w: --base has no collective=%s", ErrInexpressible, c.Name)
	}
	intra := collective.child("comm_type=intra")
	if intra == nil {
		return 0, fmt.Errorf("%w: --base has no comm_type=intra for %s", ErrInexpressible, c.Name)
	}
	before := intra.children
	var children []*tree
	n := 0
	for i, g := range list {
		if i > 0 && list[i-1].ranks == g.ranks {
			return 0, fmt.Errorf("%w: %s on %d ranks was measured on several numbers of nodes, which this tree does not know", ErrInexpressible, g.op, g.ranks)
		}
		ours, err := j.mpichSizes(c, g, before)
		if err != nil {
			return 0, err
		}
		if ours == nil {
			continue
		}
		n++
		if g.ranks == 0 {
			intra.children = ours
			return n, nil
		}
		children = append(children, branch(fmt.Sprintf("comm_size<%d", g.ranks), before...), branch(fmt.Sprintf("comm_size<=%d", g.ranks), ours...))
	}
	if n > 0 {
		intra.children = append(children, branch("comm_size=any", before...))
	}
	return n, nil
}

// mpichSizes is the decisions for groups of one size; nil when all of them leave it
// to MPICH.
func (j *job) mpichSizes(c algorithms.MPICHCollective, g group, before []*tree) ([]*tree, error) {
	condition := "avg_msg_size"
	unit := int64(1)
	switch g.op {
	case comm.AllGather, comm.AllGatherV, comm.ReduceScatter, comm.ReduceScatterV:
		condition = "total_msg_size"
	case comm.AllToAll: // by what goes to one peer
		if unit = int64(g.ranks); unit == 0 {
			if len(g.list) > 1 {
				return nil, fmt.Errorf("%w: %s: MPICH goes by what is sent to one rank: the number of ranks has to be known", ErrInexpressible, g.op)
			}
			unit = 1
		}
	}
	chosen := false
	var sizes []*tree
	for i, d := range g.list {
		what := before
		if d.Variant != "" {
			if !c.Has(d.Variant, max(g.ranks, 2)) {
				return nil, fmt.Errorf("%w: MPICH has no algorithm %q for %s on %d ranks: it has %s", ErrInexpressible, d.Variant, c.Name, g.ranks, strings.Join(c.Algorithms, ", "))
			}
			what, chosen = guarded(c, d.Variant, before), true
		}
		limit := d.Max / unit
		if i == len(g.list)-1 || limit > maxMPICH {
			if limit > maxMPICH && d.Max < math.MaxInt64 {
				j.out.warn("%s: sizes above %d bytes can't be told apart: MPICH reads them with atoi", c.Name, maxMPICH)
			}
			sizes = append(sizes, branch(condition+"=any", what...))
			break
		}
		sizes = append(sizes, branch(fmt.Sprintf("%s<=%d", condition, limit), what...))
	}
	if !chosen {
		return nil, nil
	}
	switch g.op { // what our choice is not for stays
	case comm.AllToAll:
		return []*tree{branch("is_sendbuf_inplace=yes", before...), branch("is_sendbuf_inplace=no", sizes...)}, nil
	case comm.ReduceScatter, comm.ReduceScatterV:
		return []*tree{branch("is_commutative=no", before...), branch("is_commutative=yes", sizes...)}, nil
	}
	return sizes, nil
}

// guarded is an algorithm where it can run, and what was there where it can't: the
// one of Rabenseifner needs a built-in operation and an element for each rank.
func guarded(c algorithms.MPICHCollective, algorithm string, before []*tree) []*tree {
	if !algorithms.NeedsElements(algorithm) {
		return []*tree{leaf(c.Leaf(algorithm))}
	}
	return []*tree{
		branch("is_op_built_in=no", before...),
		branch("is_op_built_in=yes", branch("count<pow2", before...), branch("count=any", leaf(c.Leaf(algorithm)))),
	}
}
