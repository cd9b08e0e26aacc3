package gate

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"mixdown/analyze/report"
)

// Metric is a quantity of one step that a rule can limit.
type Metric string

// The metrics. Times are ns in a step. Those of ranks are as package breakdown
// has them; those of operations are added up over all ranks and divided by the
// number of ranks that were read, so that the parts add up to the whole.
const (
	Step        Metric = "step"         // of the slowest rank, as the CPU saw it
	Compute     Metric = "compute"      // computation
	Comm        Metric = "comm"         // communication; of operations: each one's own
	ExposedComm Metric = "exposed_comm" // communication without computation beside it
	HiddenComm  Metric = "hidden_comm"  // communication with computation beside it
	Memory      Metric = "memory"       // copies and sets
	Idle        Metric = "idle"         // nothing on the device
	Wait        Metric = "wait"         // until the last member of a collective arrives
	Transfer    Metric = "transfer"     // from then to the end
	Count       Metric = "count"        // operations
	Bytes       Metric = "bytes"        // the larger side of every operation
	AlgBW       Metric = "algbw"        // bytes over transfer, GB/s
	BusBW       Metric = "busbw"        // as nccl-tests defines it, GB/s

	Speedup  Metric = "speedup"  // of a variant of a replay, paired with its baseline
	Fidelity Metric = "fidelity" // replayed step of the unchanged plan over the traced one
)

// Unit is what the values of a metric are counted in.
type Unit string

// The units.
const (
	Nanoseconds Unit = "ns"
	Pieces      Unit = "count"
	ByteCount   Unit = "bytes"
	GBPerSecond Unit = "GB/s"
	Ratio       Unit = "ratio"
)

// kind says where a metric's values come from, which decides its labels.
type kind uint8

const (
	ofRanks      kind = 1 << iota // times of ranks: label rank
	ofOperations                  // sums over operations: group, op, size, phase
	ofVariants                    // results of a replay: variant
)

// about describes a metric.
type about struct {
	unit   Unit
	kinds  kind
	higher bool // is better
	exact  bool // programs do the same in every step: no test is needed where it is so
}

var metrics = map[Metric]about{
	Step:        {unit: Nanoseconds, kinds: ofRanks | ofVariants},
	Compute:     {unit: Nanoseconds, kinds: ofRanks},
	Comm:        {unit: Nanoseconds, kinds: ofRanks | ofOperations},
	ExposedComm: {unit: Nanoseconds, kinds: ofRanks | ofOperations},
	HiddenComm:  {unit: Nanoseconds, kinds: ofRanks | ofOperations},
	Memory:      {unit: Nanoseconds, kinds: ofRanks},
	Idle:        {unit: Nanoseconds, kinds: ofRanks},
	Wait:        {unit: Nanoseconds, kinds: ofOperations},
	Transfer:    {unit: Nanoseconds, kinds: ofOperations},
	Count:       {unit: Pieces, kinds: ofOperations, exact: true},
	Bytes:       {unit: ByteCount, kinds: ofOperations, exact: true},
	AlgBW:       {unit: GBPerSecond, kinds: ofOperations, higher: true},
	BusBW:       {unit: GBPerSecond, kinds: ofOperations, higher: true},
	Speedup:     {unit: Ratio, kinds: ofVariants, higher: true},
	Fidelity:    {unit: Ratio, kinds: ofVariants},
}

// Metrics lists all metrics by name.
func Metrics() []Metric {
	var list []Metric
	for m := range metrics {
		list = append(list, m)
	}
	slices.Sort(list)
	return list
}

// Unit is what the metric is counted in.
func (m Metric) Unit() Unit { return metrics[m].unit }

// HigherIsBetter says which way the metric should go.
func (m Metric) HigherIsBetter() bool { return metrics[m].higher }

// Format writes a value with its unit.
func (u Unit) Format(v float64) string {
	switch u {
	case Nanoseconds:
		return report.Duration(int64(math.Round(v)))
	case ByteCount:
		if v < 0 {
			return "-" + report.Size(int64(math.Round(-v)))
		}
		return report.Size(int64(math.Round(v)))
	case GBPerSecond:
		return strconv.FormatFloat(v, 'g', 4, 64) + " GB/s"
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// Signed writes a change with its sign.
func (u Unit) Signed(v float64) string {
	if text := u.Format(v); v < 0 {
		return text
	} else {
		return "+" + text
	}
}

// scale of the units that limits are written in.
var scales = map[Unit]map[string]float64{
	Nanoseconds: {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9},
	ByteCount:   {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30},
	GBPerSecond: {"GB/s": 1, "MB/s": 1e-3},
	Pieces:      {"": 1},
	Ratio:       {"": 1, "x": 1},
}

// parse reads a quantity such as "2ms"; 0 needs no unit.
func (u Unit) parse(text string) (float64, error) {
	text = strings.TrimSpace(text)
	end := strings.LastIndexAny(text, "0123456789.") + 1
	number, name := text[:end], strings.TrimSpace(text[end:])
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return 0, fmt.Errorf("%q is no quantity", text)
	}
	scale, ok := scales[u][name]
	if !ok && v == 0 && name == "" {
		return 0, nil
	}
	if !ok {
		var known []string
		for n := range scales[u] {
			if n != "" {
				known = append(known, n)
			}
		}
		slices.Sort(known)
		if known == nil {
			return 0, fmt.Errorf("%q: expected a number without a unit", text)
		}
		return 0, fmt.Errorf("%q: expected a unit: %s", text, strings.Join(known, ", "))
	}
	return v * scale, nil
}
