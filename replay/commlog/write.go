package commlog

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// Text writes the tables of a worker, as log_summary(show_straggler=True) prints
// them.
func (l *Log) Text(w io.Writer, worker int) error {
	if worker < 0 || worker >= len(l.calls) {
		return fmt.Errorf("%w: worker %d of %d", ErrMismatch, worker, len(l.calls))
	}
	var b strings.Builder
	line(&b, "Comm. Op", "Message Size", "Count", "Total Latency(ms)", "Avg Latency(ms)", "tput_avg (Gbps)", "busbw_avg (Gbps)")
	rows := l.rows(worker)
	each(&b, rows, func(r row) {
		line(&b, " ", sizeText(r.size), fmt.Sprint(r.count), msText(r.totalNS), msText(r.avgNS), fmt.Sprintf("%.2f", r.tput), fmt.Sprintf("%.2f", r.bus))
	})
	b.WriteString("_______________________________\nBreakdown with straggler effect\n-------------------------------\n")
	line(&b, "Comm. Op", "Message Size", "Count", "Total comm lat(ms)", "Total straggler(ms)", "Avg comm lat(ms)", "Avg straggler(ms)")
	each(&b, rows, func(r row) {
		line(&b, " ", sizeText(r.size), fmt.Sprint(r.count), msText(r.commNS), msText(r.stragglerNS), msText(r.avgComm), msText(r.avgStraggler))
	})
	_, err := io.WriteString(w, b.String())
	return err
}

// each writes the rows under their functions.
func each(b *strings.Builder, rows []row, write func(row)) {
	for i, r := range rows {
		if i == 0 || rows[i-1].name != r.name {
			b.WriteString(r.name + "\n")
		}
		write(r)
	}
}

// line writes columns of 20 characters.
func line(b *strings.Builder, columns ...string) {
	for _, c := range columns {
		fmt.Fprintf(b, "%-20s", c)
	}
	b.WriteByte('\n')
}

// sizeText is a size as DeepSpeed's convert_size has it: "0B", "128.0 B", "98.25 MB".
func sizeText(n int64) string {
	if n == 0 {
		return "0B"
	}
	units := []string{"B", "KB", "MB", "GB", "TB", "PB", "EB"}
	unit, i := int64(1), 0
	for i < len(units)-1 && n/unit >= 1024 {
		unit, i = unit<<10, i+1
	}
	text := strings.TrimRight(strconv.FormatFloat(float64(n)/float64(unit), 'f', 2, 64), "0")
	if strings.HasSuffix(text, ".") {
		text += "0"
	}
	return text + " " + units[i]
}

func msText(ns int64) string { return fmt.Sprintf("%.2f", float64(ns)/1e6) }

// ms is a time in ms without loss.
func ms(ns int64) json.Number {
	return json.Number(fmt.Sprintf("%d.%06d", ns/1e6, ns%1e6))
}

// file is the dictionary of log_summary(return_dict=True), and the calls.
type file struct {
	Summary   map[string]map[string]summary   `json:"summary"`
	Straggler map[string]map[string]straggler `json:"straggler_analysis"`
	Metadata  metadata                        `json:"metadata"`
	Calls     []jsonCall                      `json:"calls"`
}

type summary struct {
	Count int64       `json:"count"`
	Total json.Number `json:"total_latency_ms"`
	Avg   json.Number `json:"avg_latency_ms"`
	Tput  float64     `json:"tput_avg_gbps"`
	Bus   float64     `json:"busbw_avg_gbps"`
	Bytes int64       `json:"msg_size_bytes"`
	Text  string      `json:"msg_size_str"`
}

type straggler struct {
	Count          int64       `json:"count"`
	TotalComm      json.Number `json:"total_comm_lat_ms"`
	TotalStraggler json.Number `json:"total_straggler_ms"`
	AvgComm        json.Number `json:"avg_comm_lat_ms"`
	AvgStraggler   json.Number `json:"avg_straggler_ms"`
	Bytes          int64       `json:"msg_size_bytes"`
	Text           string      `json:"msg_size_str"`
}

type metadata struct {
	WorldSize int32  `json:"world_size"`
	Rank      int32  `json:"rank"`
	Timestamp string `json:"timestamp"`
	Plan      string `json:"plan"`
}

// jsonCall is one call. Seq is absent in point-to-point communication.
type jsonCall struct {
	Iteration int32  `json:"iteration"`
	Task      int32  `json:"task"`
	Op        string `json:"op"`
	Backend   string `json:"backend"`
	Group     string `json:"group"`
	Ranks     int    `json:"ranks"`
	Seq       *int64 `json:"seq,omitempty"`
	InBytes   int64  `json:"in_bytes"`
	OutBytes  int64  `json:"out_bytes"`
	DurNS     int64  `json:"dur_ns"`
}

// JSON writes the dictionary of a worker, made at the given time, and beside it
// under "calls" what DeepSpeed's does not keep: each call by itself.
func (l *Log) JSON(w io.Writer, worker int, made time.Time) error {
	if worker < 0 || worker >= len(l.calls) {
		return fmt.Errorf("%w: worker %d of %d", ErrMismatch, worker, len(l.calls))
	}
	f := file{
		Summary: map[string]map[string]summary{}, Straggler: map[string]map[string]straggler{}, Calls: []jsonCall{},
		Metadata: metadata{
			WorldSize: l.plan.Workload.WorldSize, Rank: l.plan.Workload.Programs[worker].Rank,
			Timestamp: made.Format("2006-01-02T15:04:05.000000"), Plan: l.plan.Name,
		},
	}
	for _, r := range l.rows(worker) {
		if f.Summary[r.name] == nil {
			f.Summary[r.name], f.Straggler[r.name] = map[string]summary{}, map[string]straggler{}
		}
		size, text := strconv.FormatInt(r.size, 10), sizeText(r.size)
		f.Summary[r.name][size] = summary{r.count, ms(r.totalNS), ms(r.avgNS), r.tput, r.bus, r.size, text}
		f.Straggler[r.name][size] = straggler{r.count, ms(r.commNS), ms(r.stragglerNS), ms(r.avgComm), ms(r.avgStraggler), r.size, text}
	}
	for _, c := range l.calls[worker] {
		j := jsonCall{c.iteration, c.task, string(c.op), c.backend, c.groupIs, c.members, nil, c.in, c.out, c.durNS}
		if c.collective {
			seq := c.seq
			j.Seq = &seq
		}
		f.Calls = append(f.Calls, j)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(f)
}
