package tune

import (
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/protobuf/proto"

	"mixdown/analyze/export"
	"mixdown/ingest/comm"
	"mixdown/replay/tune/tunepb"
)

// Extension is that of table files, by custom.
const Extension = ".tune"

// ErrNotTable: a file is no table.
var ErrNotTable = errors.New("not a table of measurements")

// maxFile bounds a table file, in bytes: ten million rows.
const maxFile = 1 << 30

// Encode writes a table in binary: a mixdown.tune.v1.Table. The same table gives
// the same bytes.
func (t *Table) Encode() ([]byte, error) {
	pb := &tunepb.Table{SchemaVersion: SchemaVersion}
	for _, e := range t.Environments {
		x := &tunepb.Environment{Hash: e.Hash, Hardware: e.Hardware, Variables: e.Variables}
		for _, l := range e.Libraries {
			x.Libraries = append(x.Libraries, &tunepb.Library{Name: l.Name, Version: l.Version})
		}
		pb.Environments = append(pb.Environments, x)
	}
	for i := range t.Rows {
		pb.Rows = append(pb.Rows, t.Rows[i].encode())
	}
	for i := range t.Contentions {
		pb.Contentions = append(pb.Contentions, t.Contentions[i].encode())
	}
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(pb)
	if err != nil {
		return nil, fmt.Errorf("encode table: %w", err)
	}
	return data, nil
}

func (r *Row) encode() *tunepb.Row {
	known := func(v int64) *int64 {
		if v == 0 {
			return nil
		}
		return &v
	}
	x := &tunepb.Row{
		Backend: r.Backend, Variant: r.Variant, Op: string(r.Op), Dtype: string(r.DType), Device: r.Device, InPlace: r.InPlace,
		Ranks: int32(r.Ranks), InBytes: r.In, OutBytes: r.Out, SizeError: r.SizeError, Streams: int32(r.Streams),
		TimeNs: r.Time, Statistic: r.Statistic, MinNs: known(r.Min), P95Ns: known(r.P95), N: known(r.N),
		CiLowNs: known(r.CILow), CiHighNs: known(r.CIHigh), Environment: r.Environment, Source: r.Source, Verified: r.Verified,
		InStep: r.InStep, GapNs: r.Gap,
	}
	if r.Nodes > 0 {
		nodes := int32(r.Nodes)
		x.Nodes = &nodes
	}
	return x
}

// Decode reads a table.
func Decode(data []byte) (*Table, error) {
	if len(data) < 2 || data[0] != 0x08 {
		return nil, fmt.Errorf("%w: it does not begin with a schema_version (\"mixdown tune\" and \"mixdown import\" make tables)", ErrNotTable)
	}
	if data[1] != SchemaVersion {
		return nil, fmt.Errorf("%w of this version of mixdown: schema_version %d, expected %d", ErrNotTable, data[1], SchemaVersion)
	}
	var pb tunepb.Table
	if err := proto.Unmarshal(data, &pb); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotTable, err)
	}
	t := &Table{}
	for _, e := range pb.Environments {
		x := Environment{Hardware: e.Hardware, Variables: e.Variables}
		for _, l := range e.Libraries {
			x.Libraries = append(x.Libraries, Library{l.Name, l.Version})
		}
		if hash := t.AddEnvironment(x); hash != e.Hash {
			return nil, fmt.Errorf("%w: environment %q has the content of %q", ErrNotTable, e.Hash, hash)
		}
	}
	rows := make([]Row, 0, len(pb.Rows))
	for _, x := range pb.Rows {
		rows = append(rows, decodeRow(x))
	}
	if err := t.Add(rows...); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotTable, err)
	}
	for _, x := range pb.Contentions {
		if err := t.AddContention(decodeContention(x)); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNotTable, err)
		}
	}
	return t, nil
}

func decodeRow(x *tunepb.Row) Row {
	return Row{
		Contender: Contender{x.Backend, x.Variant}, Op: comm.Op(x.Op), DType: comm.DType(x.Dtype), Device: x.Device, InPlace: x.InPlace,
		Ranks: int(x.Ranks), Nodes: int(x.GetNodes()), In: x.InBytes, Out: x.OutBytes, SizeError: x.SizeError, Streams: int(x.Streams),
		Time: x.TimeNs, Statistic: x.Statistic, Min: x.GetMinNs(), P95: x.GetP95Ns(), N: x.GetN(),
		CILow: x.GetCiLowNs(), CIHigh: x.GetCiHighNs(), Environment: x.Environment, Source: x.Source, Verified: x.Verified,
		InStep: x.InStep, Gap: x.GapNs,
	}
}

// Read reads a table file.
func Read(name string) (*Table, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", name, ErrNotTable, maxFile)
	}
	t, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// Write writes a table file; it has its name when it is whole.
func (t *Table) Write(name string) error {
	data, err := t.Encode()
	if err != nil {
		return err
	}
	return export.WriteFile(name, func(w io.Writer) error { _, err := w.Write(data); return err })
}

// WriteParquet writes the rows as Parquet, one row each, with their environment
// beside them.
func (t *Table) WriteParquet(w io.Writer) error {
	rows := make([]export.Measurement, 0, len(t.Rows))
	for _, r := range t.Rows {
		e, _ := t.Environment(r.Environment)
		m := export.Measurement{
			Backend: r.Backend, Variant: r.Variant, Op: string(r.Op), DType: string(r.DType), Device: r.Device, InPlace: r.InPlace,
			Ranks: int64(r.Ranks), Nodes: int64(r.Nodes), In: r.In, Out: r.Out, SizeError: r.SizeError, Streams: int64(r.Streams),
			Time: r.Time, Statistic: r.Statistic, Min: r.Min, P95: r.P95, N: r.N, CILow: r.CILow, CIHigh: r.CIHigh,
			Hardware: e.Hardware, Environment: r.Environment, Source: r.Source, Verified: r.Verified,
			InStep: r.InStep, Gap: r.Gap,
		}
		for _, l := range e.Libraries {
			if l.Name == r.Backend {
				m.Version = l.Version
			}
		}
		rows = append(rows, m)
	}
	return export.WriteMeasurements(w, rows)
}
