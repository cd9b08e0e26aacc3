package imports

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mixdown/ingest/comm"
	"mixdown/replay/tune"
)

// readNCCLTests reads the table that nccl-tests and rccl-tests print, or their JSON
// or CSV. Times are the mean over ranks unless the run had -a 3.
func readNCCLTests(x *reading) error {
	first := bytes.TrimSpace(x.data)
	switch {
	case len(first) > 0 && (first[0] == '{' || first[0] == '['):
		return x.readNCCLJSON()
	case bytes.HasPrefix(first, []byte("name,")) || bytes.HasPrefix(first, []byte("\"name\",")):
		return x.readRCCLCSV()
	}
	t := ncclText{reading: x, hosts: map[string]bool{}, op: x.Op}
	if err := x.lines(t.line); err != nil {
		return err
	}
	return t.finish()
}

// ncclText is a text in progress. Ranks come before rows, but lines of one run may
// come in any order from several processes, so rows wait.
type ncclText struct {
	*reading
	op    comm.Op
	ranks int
	hosts map[string]bool
	rows  []measured
	// columns of one half of the table, as its header names them.
	columns []string
}

// ncclColumns are those of a table without a header.
var ncclColumns = []string{"time", "algbw", "busbw", "#wrong"}

var (
	ncclStart = regexp.MustCompile(`^#\s*Collective test starting:\s*(\S+)`)
	ncclRank  = regexp.MustCompile(`^#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+\s+on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s*(.*)$`)
	ncclTool  = regexp.MustCompile(`^#\s*\S*nccl-tests version\s+\S+.*[nr]ccl-library=(\d+)`)
)

func (t *ncclText) line(line string, offset int64) error {
	switch {
	case ncclStart.MatchString(line):
		return t.setOp(ncclStart.FindStringSubmatch(line)[1])
	case ncclRank.MatchString(line):
		m := ncclRank.FindStringSubmatch(line)
		rank, err := strconv.Atoi(m[1])
		if err == nil {
			t.ranks = max(t.ranks, rank+1)
			t.hosts[m[2]] = true
		}
		return nil
	case ncclTool.MatchString(line) && t.Version == "":
		t.Version = ncclVersion(ncclTool.FindStringSubmatch(line)[1])
		return nil
	case strings.HasPrefix(line, "#"):
		t.header(strings.Fields(line))
		return nil
	}
	t.row(strings.Fields(line), offset)
	return nil
}

// ncclVersion words a version code: 23004 is 2.30.4, 2708 is 2.7.8.
func ncclVersion(code string) string {
	n, err := strconv.Atoi(code)
	switch {
	case err != nil || n <= 0:
		return code
	case n < 10000:
		return strconv.Itoa(n/1000) + "." + strconv.Itoa(n%1000/100) + "." + strconv.Itoa(n%100)
	}
	return strconv.Itoa(n/10000) + "." + strconv.Itoa(n%10000/100) + "." + strconv.Itoa(n%100)
}

func (t *ncclText) setOp(program string) error {
	if op, ok := ncclOp(program); ok {
		t.op = op
	}
	return nil
}

// ncclOp is the operation of a program, "all_reduce_perf".
func ncclOp(program string) (comm.Op, bool) {
	name := strings.TrimSuffix(filepath.Base(program), "_perf")
	if name == "sendrecv" {
		return comm.Send, true
	}
	return comm.ParseOp(name)
}

// header reads "# size count type redop root time ... time ...": what options add
// to the table is named there.
func (t *ncclText) header(f []string) {
	if len(f) < 7 || f[1] != "size" || f[2] != "count" || f[5] != "root" {
		return
	}
	half := f[6:]
	for i := 1; i < len(half); i++ {
		if half[i] == half[0] {
			half = half[:i]
			break
		}
	}
	t.columns = half
}

// row reads a row: five fixed fields, then one half out of place and one in place.
// One half alone is the one in place. A line of something else in between is none.
func (t *ncclText) row(f []string, offset int64) {
	if len(f) < 5 {
		return
	}
	size, err1 := strconv.ParseInt(f[0], 10, 64)
	_, err2 := strconv.ParseInt(f[1], 10, 64)
	_, err3 := strconv.Atoi(f[4])
	if err1 != nil || err2 != nil || err3 != nil {
		return
	}
	columns := t.columns
	if columns == nil {
		columns = ncclColumns
	}
	rest, width := f[5:], len(columns)
	if len(rest) < width {
		t.note(CodeBadRow, offset, "%s", strings.Join(f, " "))
		return
	}
	halves, inPlace := [][]string{rest[:width]}, []bool{true}
	if len(rest) >= 2*width {
		halves, inPlace = append(halves, rest[width:2*width]), []bool{false, true}
	}
	dtype := t.dtypeOf(f[2], offset)
	for i, half := range halves {
		value := func(names ...string) (float64, bool) {
			k := slices.IndexFunc(columns, func(c string) bool { return slices.Contains(names, c) })
			if k < 0 {
				return 0, false
			}
			v, err := strconv.ParseFloat(half[k], 64)
			return v, err == nil
		}
		us, ok := value("time", "cputime")
		if !ok {
			t.note(CodeBadRow, offset, "%s", strings.Join(f, " "))
			continue
		}
		wrong, checked := value("#wrong")
		if wrong > 0 {
			t.note(CodeWrongData, offset, "%d bytes: %v wrong", size, wrong)
			continue
		}
		shortest, _ := value("i_min")
		t.rows = append(t.rows, measured{
			dtype: dtype, size: size, ns: ns(us), min: ns(shortest), statistic: tune.Mean, inPlace: inPlace[i], verified: checked, offset: offset,
		})
	}
}

// finish adds the rows, once all is known.
func (t *ncclText) finish() error {
	if len(t.rows) == 0 {
		return nil
	}
	if t.op == "" {
		t.op = opInName(t.name)
	}
	if t.op == "" {
		return missingOp()
	}
	if err := t.ranksKnown(t.ranks, len(t.hosts)); err != nil {
		return err
	}
	for _, m := range t.rows {
		m.op = t.op
		if err := t.add(m, whole); err != nil {
			return err
		}
	}
	return nil
}
