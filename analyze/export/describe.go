package export

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"
)

// descriptionFile says what is in a folder of tables.
const descriptionFile = "tables.json"

// description is the content of descriptionFile.
type description struct {
	SchemaVersion int                `json:"schema_version"`
	Tool          string             `json:"tool"`
	Format        string             `json:"format"` // parquet or arrow
	Time          string             `json:"time"`
	WorldSize     int                `json:"world_size"`
	Clocks        clockDescription   `json:"clocks"`
	Tables        []tableDescription `json:"tables"`
	DuckDB        []string           `json:"duckdb,omitempty"` // statements that make a view of each table
}

// clockDescription says how far times of different ranks can be compared.
type clockDescription struct {
	Applied    bool   `json:"applied"`
	Comparable bool   `json:"comparable"`
	Reason     string `json:"reason"`
	Residual   *int64 `json:"residual_ns"` // the largest of the ranks'; null when nothing was compared
}

type tableDescription struct {
	Name          string              `json:"name"`
	About         string              `json:"about"`
	Path          string              `json:"path"`
	PartitionedBy []string            `json:"partitioned_by"`
	SortedBy      []string            `json:"sorted_by"`
	Rows          int                 `json:"rows"`
	Files         int                 `json:"files"`
	Columns       []columnDescription `json:"columns"`
}

type columnDescription struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Nullable   bool   `json:"nullable"`
	Dictionary bool   `json:"dictionary,omitempty"`
	Unit       string `json:"unit,omitempty"`
	About      string `json:"about"`
	HTA        string `json:"hta,omitempty"` // what HTA calls the same
}

// timeAbout is what every reader has to know of the times.
const timeAbout = "ts and dur are int64 ns, on the clock of the trace after alignment, not microseconds as in HTA; what is not known is null, not -1"

func (x *exporter) describe(format string) *description {
	d := &description{
		SchemaVersion: SchemaVersion, Tool: x.Tool, Format: format, Time: timeAbout,
		WorldSize: x.Run.WorldSize(), Tables: []tableDescription{},
		Clocks: clockDescription{Applied: x.Clocks.Applied, Comparable: x.Clocks.Connected, Reason: x.Clocks.Reason},
	}
	if r, ok := x.residual(); ok {
		d.Clocks.Residual = &r
	}
	return d
}

// residual is the largest of the ranks', ns; see align.Clock.
func (x *exporter) residual() (int64, bool) {
	var worst int64
	found := false
	for _, c := range x.Clocks.Clocks {
		if c.Matches > 0 {
			worst, found = max(worst, c.Residual), true
		}
	}
	return worst, found
}

func (d *description) write(path string) error {
	if d.Format == "parquet" {
		for _, t := range d.Tables {
			hive := ""
			if len(t.PartitionedBy) > 0 {
				hive = ", hive_partitioning = true"
			}
			d.DuckDB = append(d.DuckDB, fmt.Sprintf("CREATE VIEW %s AS SELECT * FROM read_parquet('%s'%s);", t.Name, t.Path, hive))
		}
	}
	data, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// valid is s with U+FFFD for each byte that is not UTF-8: readers of Arrow and
// Perfetto refuse other text.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}
