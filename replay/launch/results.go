package launch

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"mixdown/replay/plan"
	"mixdown/replay/plan/planpb"
)

// Results is what the workers of one experiment measured.
type Results struct {
	Backends []*planpb.BackendInfo // as the first worker reports them
	Plans    []PlanResult          // in the order of Experiment.plans
	// Device is where buffers were, OnHost, OnCUDA or OnHIP, DeviceName what its driver
	// calls it, "" for the host.
	Device, DeviceName string
	// Hosts are those of a run on several, nil for one on this host alone.
	Hosts []Host
	// Sharing is the largest number of workers that shared one GPU, 0 on the host.
	Sharing int

	onDevice map[string]int // workers, by host and address of their device
	each     func(worker int, it *planpb.Iteration) error
}

// PlanResult is the outcome of one plan.
type PlanResult struct {
	Name string
	// Iterations is the duration of each timed iteration in ns: from the common
	// start to the end of the last rank.
	Iterations []int64
	// Ranks[i] are the same of worker i alone, from its own start.
	Ranks [][]int64
	// Checked: every worker compared its data; Errors are the differences.
	Checked    bool
	Operations int64
	Elements   int64
	Errors     []string
	// Codecs are what codecs did to the plan's payloads.
	Codecs         []CodecResult
	verifiedByRank map[int]bool
	took           []int64                       // of each iteration, to the end of the last rank; -1 when nobody wrote it
	codecsOf       map[int][]*planpb.Compression // by worker, in the order of its records
}

// CodecResult is what one codec did to a plan's payloads.
type CodecResult struct {
	Compression *planpb.Compression
	// Sums over the ranks: operations of an iteration, the bytes that the codec
	// compressed there and what they became.
	Operations, Bytes, CompressedBytes int64
	// NS is the time in the codec of each iteration, on the rank that needed most.
	NS []int64
	// Of the data check, against what comes without any compression: of how many
	// elements (0: not checked), the largest error, sums of the squares of errors and
	// of exact results.
	Elements                 int64
	MaxAbs, SqError, SqExact float64
}

// Relative is the error as a share of the exact results, in the square mean; false
// where data was not checked.
func (c *CodecResult) Relative() (float64, bool) {
	if c.Elements == 0 || c.SqExact == 0 {
		return 0, false
	}
	return math.Sqrt(c.SqError / c.SqExact), true
}

// codec is the result of a codec, made when it is new.
func (p *PlanResult) codec(c *planpb.Compression) *CodecResult {
	for i := range p.Codecs {
		if proto.Equal(p.Codecs[i].Compression, c) {
			return &p.Codecs[i]
		}
	}
	p.Codecs = append(p.Codecs, CodecResult{Compression: c, NS: make([]int64, len(p.took))})
	return &p.Codecs[len(p.Codecs)-1]
}

// Verified says whether the data of all operations of all ranks was compared
// and right.
func (p *PlanResult) Verified() bool { return p.Checked && len(p.Errors) == 0 }

// readResults reads the result files of all workers, and calls `each`, when set,
// for every iteration of every worker.
func readResults(dir string, exp *planpb.Experiment, each func(worker int, it *planpb.Iteration) error) (*Results, error) {
	r := &Results{each: each}
	n := len(exp.Plans[0].Workload.Programs)
	for _, p := range exp.Plans {
		iterations := int(exp.Settings.GetIterations())
		r.Plans = append(r.Plans, PlanResult{
			Name: p.Name, Ranks: make([][]int64, n), verifiedByRank: map[int]bool{},
			took: slices.Repeat([]int64{-1}, iterations),
		})
	}
	for i := range n {
		if err := r.readWorker(filepath.Join(dir, fmt.Sprintf("result.%d.pb", i)), i, exp); err != nil {
			return nil, err
		}
	}
	for k := range r.Plans {
		p := &r.Plans[k]
		p.Checked = len(p.verifiedByRank) == n
		for it, took := range p.took {
			if took < 0 {
				return nil, fmt.Errorf("%w: no worker wrote iteration %d of plan %q", ErrFailed, it, p.Name)
			}
			p.Iterations = append(p.Iterations, took)
		}
	}
	return r, nil
}

func (r *Results) readWorker(path string, worker int, exp *planpb.Experiment) error {
	for rec, err := range plan.ReadRecords(path) {
		if err == nil {
			err = r.add(rec, worker, exp)
		}
		if err != nil {
			return fmt.Errorf("%w: read %s: %w", ErrFailed, path, err)
		}
	}
	return nil
}

func (r *Results) add(rec *planpb.Record, worker int, exp *planpb.Experiment) error {
	switch kind := rec.Kind.(type) {
	case *planpb.Record_Header:
		h := kind.Header
		if err := refuseEmulated(h.Emulated); err != nil {
			return err
		}
		if r.Device, r.DeviceName = h.Device, h.DeviceName; h.Device == OnCUDA || h.Device == OnHIP {
			at := h.Host + " " + h.DeviceAddress
			if r.onDevice == nil {
				r.onDevice = map[string]int{}
			}
			r.onDevice[at]++
			r.Sharing = max(r.Sharing, r.onDevice[at])
		}
		if worker == 0 {
			r.Backends = kind.Header.Backends
		}
	case *planpb.Record_Verification:
		v := kind.Verification
		if int(v.Plan) >= len(r.Plans) || v.Plan < 0 {
			return fmt.Errorf("plan %d of %d", v.Plan, len(r.Plans))
		}
		p := &r.Plans[v.Plan]
		p.verifiedByRank[worker] = true
		p.Operations += v.Operations
		p.Elements += v.Elements
		rank := exp.Plans[0].Workload.Programs[worker].Rank
		for _, e := range v.Errors {
			p.Errors = append(p.Errors, fmt.Sprintf("rank %d: %s", rank, e))
		}
	case *planpb.Record_Compressed:
		c := kind.Compressed
		if int(c.Plan) >= len(r.Plans) || c.Plan < 0 {
			return fmt.Errorf("plan %d of %d", c.Plan, len(r.Plans))
		}
		p := &r.Plans[c.Plan]
		k := p.codec(c.Compression)
		k.Operations += c.Operations
		k.Bytes += c.Bytes
		k.CompressedBytes += c.CompressedBytes
		k.Elements += c.Elements
		k.MaxAbs = max(k.MaxAbs, c.MaxAbsError)
		k.SqError += c.SquaredError
		k.SqExact += c.SquaredExact
		if p.codecsOf == nil {
			p.codecsOf = map[int][]*planpb.Compression{}
		}
		p.codecsOf[worker] = append(p.codecsOf[worker], c.Compression)
	case *planpb.Record_Iteration:
		it := kind.Iteration
		if int(it.Plan) >= len(r.Plans) || it.Plan < 0 || it.Iteration < 0 || int(it.Iteration) >= len(r.Plans[it.Plan].took) {
			return fmt.Errorf("iteration %d of plan %d was not asked for", it.Iteration, it.Plan)
		}
		p := &r.Plans[it.Plan]
		offset := exp.Plans[it.Plan].Workload.Programs[worker].StartOffsetNs
		// The start is common, but each host has a clock of its own.
		p.took[it.Iteration] = max(p.took[it.Iteration], it.EndNs-it.StartNs)
		if len(it.CodecNs) != len(p.codecsOf[worker]) {
			return fmt.Errorf("times of %d codecs, plan %d has %d", len(it.CodecNs), it.Plan, len(p.codecsOf[worker]))
		}
		for i, ns := range it.CodecNs {
			most := &p.codec(p.codecsOf[worker][i]).NS[it.Iteration]
			*most = max(*most, ns)
		}
		p.Ranks[worker] = append(p.Ranks[worker], it.EndNs-it.StartNs-offset)
		if r.each != nil {
			return r.each(worker, it)
		}
	}
	return nil
}
