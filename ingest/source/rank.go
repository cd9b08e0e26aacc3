package source

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// Patterns that RankFromName knows, as it reports them.
const (
	PatternRank   = "rank<R>"   // rank-3.json.gz, trace_rank_3.json, rank[3].json, rank3_trace.json
	PatternWorker = "worker<R>" // worker3.pt.trace.json, worker3_step_12.1694128201545.pt.trace.json
	PatternFolder = "rank<R>/"  // rank3/anything.json
)

var (
	// The word before "rank" is captured: it may say that this is another
	// kind of rank.
	rankInName = regexp.MustCompile(`(?:^|[^a-z0-9])(?:([a-z]+)[_.-])?(global)?rank[ _.=:-]?\[?([0-9]+)(?:of[0-9]+)?(?:[^a-z0-9]|$)`)

	// Only worker<R> alone or followed by the step. The default worker name of
	// torch.profiler is <host>_<pid>, and hosts are often called worker-0.
	workerInName = regexp.MustCompile(`^worker([0-9]+)(?:_step_?[0-9]+)?(?:\.|$)`)

	rankFolder = regexp.MustCompile(`^(?:global[_-]?)?rank[_-]?\[?([0-9]+)\]?$`)

	executionTraceName = regexp.MustCompile(`^(?:.*[._-])?(?:et|eg|chakra)[._-]([0-9]+)(?:\.(?:et|json|pt))*(?:\.(?:gz|zst))?$`)
)

// otherRanks are words that make "rank" something else than the global rank.
var otherRanks = map[string]bool{
	"local": true, "node": true, "host": true, "group": true, "replica": true,
	"tp": true, "dp": true, "pp": true, "ep": true, "cp": true, "sp": true, "mp": true, "vp": true,
	"etp": true, "edp": true, "fsdp": true, "hsdp": true, "ddp": true,
	"tensor": true, "data": true, "pipeline": true, "expert": true, "context": true,
	"sequence": true, "model": true, "parallel": true, "stage": true, "shard": true,
}

// RankFromName returns the global rank that the name of a trace file tells,
// and by which pattern. The name may be a path; its last element counts most,
// and a folder called after a rank next.
//
// Numbers that mean something else give no rank: process ids
// (host_1234.1694128201545.pt.trace.json), positions in parallel groups
// (id-TP-0-DP-1.trace.json.gz, tp_rank_0), local ranks, and names with two
// different ranks.
func RankFromName(name string) (rank int, pattern string, ok bool) {
	elements := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '/' || r == '\\' || r == '!' })
	if len(elements) == 0 {
		return 0, "", false
	}
	base := elements[len(elements)-1]
	rank, found, ambiguous := rankWord(base)
	if ambiguous {
		return 0, "", false
	}
	if found {
		return rank, PatternRank, true
	}
	if m := workerInName.FindStringSubmatch(base); m != nil {
		if rank, ok := atoi(m[1]); ok {
			return rank, PatternWorker, true
		}
	}
	for i := len(elements) - 2; i >= 0; i-- {
		if m := rankFolder.FindStringSubmatch(elements[i]); m != nil {
			if rank, ok := atoi(m[1]); ok {
				return rank, PatternFolder, true
			}
		}
	}
	return 0, "", false
}

// rankWord looks for "rank" and a number in s.
func rankWord(s string) (rank int, found, ambiguous bool) {
	for len(s) > 0 {
		m := rankInName.FindStringSubmatchIndex(s)
		if m == nil {
			break
		}
		n, ok := atoi(s[m[6]:m[7]])
		word := ""
		if m[2] >= 0 {
			word = s[m[2]:m[3]]
		}
		if ok && !otherRanks[word] {
			if found && n != rank {
				return 0, false, true
			}
			rank, found = n, true
		}
		s = s[m[7]:] // the separator behind may be the one before the next
	}
	return rank, found, false
}

// maxRank bounds what is believed to be a rank; longer numbers are times or
// ids.
const maxRank = 10_000_000

func atoi(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0 && n < maxRank
}

// RankFromExecutionTraceName returns the rank in the name of an execution
// trace: et.3, trace.et.3.json, chakra.3.et, dlrm_eg_3.json.gz. The names are
// too loose for profiler traces.
func RankFromExecutionTraceName(name string) (rank int, ok bool) {
	if rank, _, ok := RankFromName(name); ok {
		return rank, true
	}
	base := strings.ToLower(path.Base(strings.ReplaceAll(strings.ReplaceAll(name, `\`, "/"), "!", "/")))
	if m := executionTraceName.FindStringSubmatch(base); m != nil {
		return atoi(m[1])
	}
	return 0, false
}

// CompileRankRegexp compiles a regular expression that a user gives to find
// ranks in names. It must have a group: the one named "rank", or the first.
func CompileRankRegexp(expr string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, fmt.Errorf("bad rank pattern: %w", err)
	}
	if re.NumSubexp() == 0 {
		return nil, errors.New(`bad rank pattern: it needs a group, such as node(?P<rank>\d+)`)
	}
	return re, nil
}

// RankFromRegexp returns the rank that re finds in name: its group called
// "rank", or the first group.
func RankFromRegexp(re *regexp.Regexp, name string) (rank int, ok bool) {
	group := re.SubexpIndex("rank")
	if group < 0 {
		group = 1
	}
	m := re.FindStringSubmatch(name)
	if group >= len(m) {
		return 0, false
	}
	return atoi(m[group])
}
