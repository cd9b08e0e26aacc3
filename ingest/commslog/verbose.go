package commslog

import "strings"

const (
	verboseStart = "comm op: "
	verboseTime  = " | time (ms): "
	verboseSize  = " | msg size: "
	verboseAlg   = " | algbw (Gbps): "
	verboseBus   = " | busbw (Gbps): "
)

// verbose reads the verbose lines in a line. Several ranks may have written
// into one line, so there may be more than one; it returns how many it added.
func (log *Log) verbose(line string, at int64) int {
	n := 0
	before := 0 // where the text that may hold the rank begins
	for {
		i := strings.Index(line[before:], verboseStart)
		if i < 0 {
			return n
		}
		start := before + i
		end := len(line)
		if next := strings.Index(line[start+len(verboseStart):], verboseStart); next >= 0 {
			end = start + len(verboseStart) + next
		}
		call, used, ok := parseVerbose(line[start+len(verboseStart) : end])
		switch {
		case ok:
			call.Offset = at + int64(start)
			call.Rank, call.RankKnown = rankBefore(line[before:start])
			call.Stamp = stampIn(line[before:start])
			log.unknownName(call.Op, call.Name, call.Offset)
			log.Calls = append(log.Calls, call)
			n++
		case strings.Contains(line[start:end], "time (ms)") || strings.Contains(line[start:end], "msg size"):
			log.note(CodeBadLine, at+int64(start), line[start:end])
		}
		before = start + len(verboseStart) + used
	}
}

// parseVerbose reads what stands behind "comm op: " and says how much of it.
func parseVerbose(s string) (call Call, used int, ok bool) {
	name, rest, ok1 := strings.Cut(s, verboseTime)
	dur, rest, ok2 := strings.Cut(rest, verboseSize)
	size, rest, ok3 := strings.Cut(rest, verboseAlg)
	alg, rest, ok4 := strings.Cut(rest, verboseBus)
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return call, 0, false
	}
	n := numberLength(rest)
	bus := rest[:n]
	var okName, okSize, okTime bool
	call.Name, call.Caller, okName = splitName(name)
	dur, alg = strings.TrimSpace(dur), strings.TrimSpace(alg)
	call.DurNS, okTime = millis(dur)
	call.SizeLo, call.SizeHi, okSize = parseSize(size)
	if !okName || !okSize || !okTime || call.DurNS < 0 || !isNumber(dur) || !isNumber(alg) || n == 0 {
		return Call{}, 0, false
	}
	call.Op = opOf(call.Name)
	if v, ok := gbps(alg); ok {
		call.AlgGbps, call.AlgGbpsKnown = v, true
	}
	if v, ok := gbps(bus); ok {
		call.BusGbps, call.BusGbpsKnown = v, true
	}
	return call, len(s) - len(rest) + n, true
}

// rankBefore finds the rank in the head of a log line: "[Rank 0] " or, in the
// old form, "rank=0 | ".
func rankBefore(head string) (int, bool) {
	for _, mark := range []string{"rank=", "[Rank "} {
		if i := strings.LastIndex(head, mark); i >= 0 {
			if n, ok := leadingInt(head[i+len(mark):]); ok {
				return n, true
			}
		}
	}
	return 0, false
}

// stampIn returns the time in the head of a log line, "2022-06-26 01:39:55,722".
func stampIn(head string) string {
	const form = "0000-00-00 00:00:00,000"
	for end := strings.LastIndexByte(head, ']'); end >= 0; end = strings.LastIndexByte(head[:end], ']') {
		start := end - len(form)
		if start < 1 || head[start-1] != '[' {
			continue
		}
		s := head[start:end]
		if stampForm(s) == form {
			return s
		}
	}
	return ""
}

func stampForm(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= '0' && c <= '9' {
			b[i] = '0'
		}
	}
	return string(b)
}
