package imports

import (
	"regexp"
	"strconv"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
)

// paramRow is "COMMS-RES-all_reduce-float32-tag  1048576 262144 41.2 41.9 43.0 ...".
var paramRow = regexp.MustCompile(`COMMS-RES-([A-Za-z_0-9]+)-([A-Za-z_0-9.]+)(\S*)\s+(.*)$`)

// readPARAM reads the results of PARAM's comms.py: total size, elements, then the
// 50th, 75th and 95th percentile, least and greatest over ranks of each rank's mean
// time. The greatest is the slowest rank's; old versions have no such column, and
// there it is the 95th percentile.
func readPARAM(x *reading) error {
	return x.lines(func(line string, offset int64) error {
		if strings.Contains(line, "COMMS-RES-QUANT") {
			x.note(CodeUnknownOp, offset, "a quantised operation")
			return nil
		}
		m := paramRow.FindStringSubmatch(line)
		if m == nil {
			return nil
		}
		name := m[1]
		if name == "pt2pt" {
			x.note(CodeUnknownOp, offset, "pt2pt: its table has round trips and windows, not single messages")
			return nil
		}
		op, ok := comm.ParseOp(name)
		if !ok {
			x.note(CodeUnknownOp, offset, "%s", name)
			return nil
		}
		var f []float64
		for _, s := range strings.Fields(m[4]) {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				x.note(CodeBadRow, offset, "%s", strings.TrimSpace(line))
				return nil
			}
			f = append(f, v)
		}
		if len(f) < 5 {
			x.note(CodeBadRow, offset, "%s", strings.TrimSpace(line))
			return nil
		}
		slowest := f[4] // p95, where there is no maximum
		if len(f) >= 9 {
			slowest = f[6]
		}
		return x.add(measured{
			op: op, dtype: x.dtypeOf(strings.TrimPrefix(m[2], "torch."), offset), size: int64(f[0]), ns: ns(slowest), statistic: tune.Mean,
			inPlace: op == comm.Broadcast || op == comm.AllReduce, offset: offset,
		}, whole)
	})
}
