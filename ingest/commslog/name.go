package commslog

import (
	"strings"

	"mixdown/ingest/comm"
)

// names are the log names of deepspeed/comm/comm.py that are not spelled like
// operations of torch.distributed.
var names = map[string]comm.Op{
	"inference_all_reduce":  comm.AllReduce,
	"broadcast_object_list": comm.Broadcast,
	"batch_isend_irecv":     comm.Batch,
	"log_summary_barrier":   comm.Barrier,
	"all_gather_object":     comm.AllGather,
}

func opOf(name string) comm.Op {
	if op, ok := names[name]; ok {
		return op
	}
	if op, ok := comm.ParseOp(name); ok {
		return op
	}
	return comm.Unknown
}

const callerPrefix = "[Caller Func: "

// maxName is the length of what is believed to be the name of an operation.
const maxName = 128

// splitName reads a record name: "all_reduce", or in debug mode
// "all_reduce | [Caller Func: allreduce_fn]". Names are identifiers; whoever
// calls the logger may choose them.
func splitName(s string) (name, caller string, ok bool) {
	name, rest, debug := strings.Cut(strings.TrimSpace(s), " | ")
	if debug {
		rest = strings.TrimSpace(rest)
		if !strings.HasPrefix(rest, callerPrefix) || !strings.HasSuffix(rest, "]") {
			return "", "", false
		}
		caller = rest[len(callerPrefix) : len(rest)-1]
		if caller == "" || strings.ContainsAny(caller, " []|") && !strings.HasPrefix(caller, "<") {
			return "", "", false
		}
	}
	name = strings.TrimSpace(name)
	if !isName(name) || len(caller) > maxName {
		return "", "", false
	}
	return name, caller, true
}

func isName(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
		case i > 0 && (c >= '0' && c <= '9' || c == '.' || c == ':' || c == '/' || c == '-'):
		default:
			return false
		}
	}
	last := s[len(s)-1]
	return last != ':' && last != '.' && last != '-' && last != '/'
}
