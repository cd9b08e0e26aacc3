package commslog

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"mixdown/ingest/diagnostic"
)

// The dictionary of log_all(return_dict=True), as json.dump writes it: the
// sizes, integers in Python, become strings as keys. Numbers stay text, so that
// no time passes through a float.
type jsonLog struct {
	Summary   map[string]map[string]jsonRow       `json:"summary"`
	Straggler map[string]map[string]jsonStraggler `json:"straggler_analysis"`
	Metadata  struct {
		WorldSize *int   `json:"world_size"`
		Rank      *int   `json:"rank"`
		Timestamp string `json:"timestamp"`
	} `json:"metadata"`
}

type jsonRow struct {
	Count json.Number `json:"count"`
	Total json.Number `json:"total_latency_ms"`
	Avg   json.Number `json:"avg_latency_ms"`
	Tput  json.Number `json:"tput_avg_gbps"`
	Bus   json.Number `json:"busbw_avg_gbps"`
	Bytes json.Number `json:"msg_size_bytes"`
}

type jsonStraggler struct {
	Count          json.Number `json:"count"`
	TotalComm      json.Number `json:"total_comm_lat_ms"`
	TotalStraggler json.Number `json:"total_straggler_ms"`
	AvgComm        json.Number `json:"avg_comm_lat_ms"`
	AvgStraggler   json.Number `json:"avg_straggler_ms"`
	Bytes          json.Number `json:"msg_size_bytes"`
}

// readJSON reads one dictionary or several, one after the other.
func (log *Log) readJSON(b *bufio.Reader, opts Options) error {
	data, err := io.ReadAll(io.LimitReader(b, opts.MaxJSONBytes+1))
	if err != nil && len(data) == 0 {
		return err
	}
	if int64(len(data)) > opts.MaxJSONBytes {
		return fmt.Errorf("JSON of more than %d bytes", opts.MaxJSONBytes)
	}
	data = withoutNaN(data)
	dec := json.NewDecoder(bytes.NewReader(data))
	rows := 0
	for {
		at := dec.InputOffset()
		var d jsonLog
		err := dec.Decode(&d)
		var badType *json.UnmarshalTypeError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &badType):
			// The rest of the value is decoded all the same.
			log.Diagnostics.Addf(CodeBadRow, diagnostic.NoRank, badType.Offset, "%s", shown(badType.Error()))
		case err != nil && len(log.Tables) > 0:
			log.Diagnostics.Addf(CodeTruncated, diagnostic.NoRank, at, "%s", shown(err.Error()))
			return nil
		case err != nil:
			return fmt.Errorf("%w: not JSON at byte %d: %w", ErrNotLog, at, err)
		}
		if d.Summary == nil && d.Straggler == nil {
			continue
		}
		rows += log.addJSON(&d, at, opts.MaxRows-rows)
		if rows >= opts.MaxRows {
			return nil
		}
	}
}

// withoutNaN replaces the words that Python writes for numbers that are none,
// outside of strings, by null.
func withoutNaN(data []byte) []byte {
	if !bytes.Contains(data, []byte("NaN")) && !bytes.Contains(data, []byte("Infinity")) {
		return data
	}
	out := make([]byte, 0, len(data)+len(data)/8)
	inString := false
	for i := 0; i < len(data); i++ {
		switch {
		case inString && data[i] == '\\' && i+1 < len(data):
			out = append(out, data[i])
			i++
		case data[i] == '"':
			inString = !inString
		case !inString:
			if n := nonNumber(data[i:]); n > 0 {
				out = append(out, "null"...)
				i += n - 1
				continue
			}
		}
		out = append(out, data[i])
	}
	return out
}

func nonNumber(b []byte) int {
	for _, word := range []string{"-Infinity", "Infinity", "NaN"} {
		if bytes.HasPrefix(b, []byte(word)) {
			return len(word)
		}
	}
	return 0
}

// addJSON adds a table and returns its rows.
func (log *Log) addJSON(d *jsonLog, at int64, room int) int {
	t := Table{Timestamp: shown(d.Metadata.Timestamp), Straggler: d.Straggler != nil, Offset: at}
	if r := d.Metadata.Rank; r != nil && *r >= 0 {
		t.Rank, t.RankKnown = *r, true
	}
	if n := d.Metadata.WorldSize; n != nil && *n > 0 {
		t.WorldSize = *n
	}
	index := map[rowKey]int{}
	for _, record := range slices.Sorted(maps.Keys(d.Summary)) { // the same examples in every run
		sizes := d.Summary[record]
		for _, key := range slices.Sorted(maps.Keys(sizes)) {
			j := sizes[key]
			r, ok := j.row(key)
			if !ok || !log.nameJSON(&r, record, at) {
				log.note(CodeBadRow, at, record+" "+key)
				continue
			}
			k := r.key()
			if _, twice := index[k]; twice {
				log.note(CodeDuplicateKey, at, record+" "+key)
			}
			index[k] = len(t.Rows)
			t.Rows = append(t.Rows, r)
		}
	}
	for _, record := range slices.Sorted(maps.Keys(d.Straggler)) { // the same examples in every run
		sizes := d.Straggler[record]
		for _, key := range slices.Sorted(maps.Keys(sizes)) {
			j := sizes[key]
			r, ok := j.row(key)
			if !ok || !log.nameJSON(&r, record, at) {
				log.note(CodeBadRow, at, record+" "+key)
				continue
			}
			if i, ok := index[r.key()]; ok {
				t.Rows[i].Straggler = r.Straggler
				continue
			}
			log.note(CodeUnmatched, at, record+" "+key)
			t.Rows = append(t.Rows, r)
		}
	}
	slices.SortFunc(t.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Caller, b.Caller), cmp.Compare(a.SizeLo, b.SizeLo),
			cmp.Compare(a.Count, b.Count), cmp.Compare(a.TotalNS, b.TotalNS))
	})
	if len(t.Rows) > room {
		log.Diagnostics.Addf(CodeLimit, diagnostic.NoRank, at, "%d rows more than are read", len(t.Rows)-room)
		t.Rows = t.Rows[:room]
	}
	for _, r := range t.Rows {
		log.unknownName(r.Op, r.Name, at)
	}
	log.Tables = append(log.Tables, t)
	return len(t.Rows)
}

func (r *Row) key() rowKey { return rowKey{r.Name, r.Caller, r.SizeLo, r.SizeHi} }

func (log *Log) nameJSON(r *Row, record string, at int64) (ok bool) {
	r.Name, r.Caller, ok = splitName(record)
	r.Op, r.Offset, r.ResolutionNS = opOf(r.Name), at, 1
	return ok
}

// size takes the size in bytes from the value, or from its key where the value
// has none.
func (r *Row) size(value json.Number, key string) bool {
	text := cmp.Or(value.String(), key)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return false
	}
	r.SizeLo, r.SizeHi = n, n
	return true
}

func (j jsonRow) row(key string) (r Row, ok bool) {
	if !r.size(j.Bytes, key) {
		return r, false
	}
	var err error
	if r.Count, err = strconv.ParseInt(j.Count.String(), 10, 64); err != nil || r.Count < 0 {
		return r, false
	}
	var okTotal, okAvg bool
	r.TotalNS, okTotal = millis(j.Total.String())
	r.AvgNS, okAvg = millis(j.Avg.String())
	r.HasTimes = true
	r.TputGbps, r.TputGbpsKnown = gbps(j.Tput.String())
	r.BusGbps, r.BusGbpsKnown = gbps(j.Bus.String())
	r.zeroUnknown()
	return r, okTotal && okAvg
}

func (j jsonStraggler) row(key string) (r Row, ok bool) {
	if !r.size(j.Bytes, key) {
		return r, false
	}
	s := &Straggler{}
	var err error
	s.Count, err = strconv.ParseInt(j.Count.String(), 10, 64)
	var okay [4]bool
	s.TotalCommNS, okay[0] = millis(j.TotalComm.String())
	s.TotalStragglerNS, okay[1] = millis(j.TotalStraggler.String())
	s.AvgCommNS, okay[2] = millis(j.AvgComm.String())
	s.AvgStragglerNS, okay[3] = millis(j.AvgStraggler.String())
	r.Count, r.Straggler = s.Count, s
	return r, err == nil && s.Count >= 0 && okay == [4]bool{true, true, true, true}
}
