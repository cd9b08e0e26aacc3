package imports

import (
	"strconv"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
)

// readUCC reads the output of ucc_perftest: a head of "Name: value" lines, then
// count, size, and average, least and greatest time over ranks in us. The greatest
// is the slowest rank's.
func readUCC(x *reading) error {
	u := ucc{reading: x, op: x.Op}
	return x.lines(u.line)
}

type ucc struct {
	*reading
	op      comm.Op
	dtype   comm.DType
	inPlace bool
	rows    bool // the table's head was seen
}

func (u *ucc) line(line string, offset int64) error {
	if name, value, ok := strings.Cut(line, ":"); ok && !u.rows || ok && name == "Collective" {
		u.head(name, strings.TrimSpace(value), offset)
		return nil
	}
	f := strings.Fields(line)
	if len(f) >= 2 && f[0] == "Count" && f[1] == "Size" {
		u.rows = true
		return nil
	}
	if !u.rows || len(f) < 5 || u.op == "" {
		return nil
	}
	m := measured{op: u.op, dtype: u.dtype, statistic: tune.Mean, inPlace: u.inPlace || u.op == comm.Broadcast, offset: offset}
	if f[0] != "N/A" {
		if _, err := strconv.ParseInt(f[0], 10, 64); err != nil {
			return nil // what a library logs
		}
		size, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil {
			u.note(CodeBadRow, offset, "%s", strings.TrimSpace(line))
			return nil
		}
		m.size = size
	}
	us, err := strconv.ParseFloat(f[4], 64)
	if err != nil {
		u.note(CodeBadRow, offset, "%s", strings.TrimSpace(line))
		return nil
	}
	m.ns = ns(us)
	return u.add(m, partSize)
}

func (u *ucc) head(name, value string, offset int64) {
	switch strings.TrimSpace(name) {
	case "Collective":
		u.rows, u.op = false, ""
		op, ok := comm.ParseOp(value)
		if !ok && strings.EqualFold(value, "bcast") {
			op, ok = comm.Broadcast, true
		}
		if !ok {
			u.note(CodeUnknownOp, offset, "%s", value)
			return
		}
		u.op = op
	case "Memory type":
		if u.Device == "" {
			u.Device = tune.GPU
			if strings.EqualFold(value, "host") {
				u.Device = tune.Host
			}
		}
	case "Datatype":
		u.dtype = u.dtypeOf(value, offset)
	case "Inplace":
		u.inPlace = value == "1"
	}
}
