package imports

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
)

// ncclJSON is what nccl-tests -J writes. The environment in it is not read: it may
// hold secrets.
type ncclJSON struct {
	Args        []string `json:"args"`
	NCCLVersion any      `json:"nccl_version"`
	Config      struct {
		Devices []struct {
			Rank     int    `json:"rank"`
			Hostname string `json:"hostname"`
		} `json:"devices"`
	} `json:"config"`
	Results []ncclResult `json:"results"`
}

type ncclResult struct {
	Size       int64      `json:"size"`
	Type       string     `json:"type"`
	OutOfPlace *ncclHalf  `json:"out_of_place"`
	InPlace    *ncclHalf  `json:"in_place"`
	OutIter    *ncclIters `json:"out_of_place_per_iter"`
	InIter     *ncclIters `json:"in_place_per_iter"`
	Name       string     `json:"experiment_name"`
}

type ncclHalf struct {
	Time    *looseFloat `json:"time"`
	CPUTime *looseFloat `json:"cpu_time"`
	Wrong   *looseFloat `json:"nwrong"`
}

type ncclIters struct {
	Min   looseFloat   `json:"min_us"`
	P50   looseFloat   `json:"p50_us"`
	P95   looseFloat   `json:"p95_us"`
	Times []looseFloat `json:"times_us"`
}

// looseFloat reads a number, or text such as "nan", "N/A" or "  12.5".
type looseFloat float64

func (f *looseFloat) UnmarshalJSON(data []byte) error {
	text := strings.TrimSpace(strings.Trim(string(data), `"`))
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		v = -1 // never a time, nor a count
	}
	*f = looseFloat(v)
	return nil
}

func (x *reading) readNCCLJSON() error {
	var doc ncclJSON
	err := json.Unmarshal(x.data, &doc)
	if err != nil || len(doc.Results) == 0 {
		return x.readRCCLJSON()
	}
	if doc.NCCLVersion != nil && x.Version == "" {
		x.Version = ncclVersion(fmt.Sprint(doc.NCCLVersion))
	}
	hosts, ranks := map[string]bool{}, 0
	for _, d := range doc.Config.Devices {
		hosts[d.Hostname], ranks = true, max(ranks, d.Rank+1)
	}
	if err := x.ranksKnown(ranks, len(hosts)); err != nil {
		return err
	}
	op := x.Op
	if len(doc.Args) > 0 && op == "" {
		op, _ = ncclOp(doc.Args[0])
	}
	if op == "" {
		op = opInName(x.name)
	}
	for _, r := range doc.Results {
		of := op
		if of == "" {
			of, _ = ncclOp(r.Name)
		}
		if of == "" {
			return missingOp()
		}
		if r.OutOfPlace == nil && r.InPlace == nil {
			x.note(CodeNoTime, noOffset, "%d bytes: neither out_of_place nor in_place", r.Size)
		}
		if err := x.addHalf(of, r, r.OutOfPlace, r.OutIter, false); err != nil {
			return err
		}
		if err := x.addHalf(of, r, r.InPlace, r.InIter, true); err != nil {
			return err
		}
	}
	return nil
}

func (x *reading) addHalf(op comm.Op, r ncclResult, half *ncclHalf, iters *ncclIters, inPlace bool) error {
	if half == nil {
		return nil
	}
	m := measured{op: op, size: r.Size, statistic: tune.Mean, inPlace: inPlace, offset: noOffset}
	m.dtype = x.dtypeOf(r.Type, noOffset)
	switch {
	case half.Time != nil:
		m.ns = ns(float64(*half.Time))
	case half.CPUTime != nil:
		m.ns = ns(float64(*half.CPUTime))
	}
	if half.Wrong != nil && *half.Wrong > 0 {
		x.note(CodeWrongData, noOffset, "%d bytes: %v wrong", r.Size, *half.Wrong)
		return nil
	}
	m.verified = half.Wrong != nil && *half.Wrong == 0
	if iters != nil {
		m.min, m.p95, m.n = ns(float64(iters.Min)), ns(float64(iters.P95)), int64(len(iters.Times))
		if iters.P50 > 0 {
			m.ns, m.statistic = ns(float64(iters.P50)), tune.Median
		}
	}
	return x.add(m, whole)
}

const noOffset = -1

// rcclRecord is a flat record of rccl-tests.
type rcclRecord struct {
	Name    string     `json:"name"`
	GPUs    looseFloat `json:"gpus"`
	InPlace looseFloat `json:"inPlace"`
	Size    looseFloat `json:"size"`
	Time    looseFloat `json:"time"`
	Type    string     `json:"type"`
	Wrong   looseFloat `json:"#wrong"`
}

// readRCCLJSON reads a list of records, or one record a line.
func (x *reading) readRCCLJSON() error {
	data := bytes.TrimSpace(x.data)
	if data[0] == '[' {
		var list []rcclRecord
		if err := json.Unmarshal(data, &list); err != nil {
			return fmt.Errorf("%w: %w", ErrFormat, err)
		}
		for _, r := range list {
			if err := x.addRecord(r, noOffset); err != nil {
				return err
			}
		}
		return nil
	}
	return x.lines(func(line string, offset int64) error {
		line = strings.TrimSuffix(strings.TrimSpace(line), ",")
		if line == "" || line == "[" || line == "]" {
			return nil
		}
		var r rcclRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil || r.Name == "" {
			x.note(CodeBadRow, offset, "%.80s", line)
			return nil
		}
		return x.addRecord(r, offset)
	})
}

func (x *reading) readRCCLCSV() error {
	rows := csv.NewReader(bytes.NewReader(x.data))
	rows.FieldsPerRecord = -1
	head, err := rows.Read()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	for {
		f, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil || len(f) != len(head) {
			x.note(CodeBadRow, rows.InputOffset(), "%.80s", strings.Join(f, ","))
			if err != nil {
				return nil
			}
			continue
		}
		var r rcclRecord
		for i, name := range head {
			value := func(to *looseFloat) { _ = to.UnmarshalJSON([]byte(f[i])) } // never fails
			switch strings.TrimSpace(name) {
			case "name":
				r.Name = f[i]
			case "type":
				r.Type = f[i]
			case "gpus":
				value(&r.GPUs)
			case "inPlace":
				value(&r.InPlace)
			case "size":
				value(&r.Size)
			case "time":
				value(&r.Time)
			case "#wrong", "wrong":
				value(&r.Wrong)
			}
		}
		if err := x.addRecord(r, rows.InputOffset()); err != nil {
			return err
		}
	}
}

func (x *reading) addRecord(r rcclRecord, offset int64) error {
	op, ok := ncclOp(strings.TrimSpace(r.Name))
	if !ok {
		x.note(CodeUnknownOp, offset, "%.80s", r.Name)
		return nil
	}
	if r.Wrong > 0 {
		x.note(CodeWrongData, offset, "%v bytes: %v wrong", r.Size, r.Wrong)
		return nil
	}
	m := measured{op: op, dtype: x.dtypeOf(r.Type, offset), size: int64(r.Size), ns: ns(float64(r.Time)), statistic: tune.Mean, inPlace: r.InPlace > 0, offset: offset}
	if r.GPUs > 0 {
		if x.Ranks > 0 && x.Ranks != int(r.GPUs) {
			return fmt.Errorf("%w: %v ranks, not %d", ErrContradiction, r.GPUs, x.Ranks)
		}
		m.ranks = int(r.GPUs)
	}
	return x.add(m, whole)
}
