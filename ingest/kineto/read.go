package kineto

import (
	"errors"
	"io"
	"strconv"
	"strings"

	"mixdown/ingest/chrome"
	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// reading is the state of reading one file.
type reading struct {
	rank    *trace.Rank
	threads map[threadKey]trace.ThreadID
	records []record // communication events, in file order

	threadNames map[trace.ThreadID]string // as the file's metadata events give them
	diags       diagnostic.Set
	fix         Fix // of device events that start before their launch
}

type threadKey struct{ pid, tid chrome.ID }

// readRank reads one file to its end. The rank number is still open: it is in
// the file's metadata or in its name.
func readRank(r io.Reader, source string, limits chrome.Options) (*reading, error) {
	rd := &reading{
		rank:    &trace.Rank{Source: source, Names: trace.NewStrings()},
		threads: map[threadKey]trace.ThreadID{}, threadNames: map[trace.ThreadID]string{},
	}
	reader := chrome.NewReader(r, limits)
	for {
		ev, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		rd.rank.Read++
		switch {
		case ev.Phase == 'X':
			rd.add(ev)
		case ev.Phase == 'M' && string(ev.Name) == "thread_name":
			if v, ok := ev.Args.Get("name"); ok {
				rd.nameThread(rd.thread(ev), text(v))
			}
		}
	}
	for _, d := range reader.Diagnostics() {
		rd.diags.Add(diagnostic.Diagnostic{Code: d.Code, Count: d.Count, Offset: d.Offset, Example: d.Example})
	}
	rd.rank.Truncated = reader.Truncated()
	rd.readMetadata(reader.Metadata())
	return rd, nil
}

// add stores one complete event.
func (rd *reading) add(ev *chrome.Event) {
	category := categoryOf(ev.Cat, ev.Name)
	if !ev.HasTS {
		rd.diags.Addf("no-timestamp", diagnostic.NoRank, ev.Offset, "%q has no usable ts and is left out", ev.Name)
		return
	}
	row := trace.Row{
		Name: rd.rank.Names.Intern(ev.Name), Category: category,
		Thread: rd.thread(ev), TS: ev.TS, Offset: ev.Offset,
		Correlation: trace.NoID, Stream: trace.NoStream, Device: -1,
	}
	if ev.HasDur {
		row.Dur = max(ev.Dur, 0)
	}
	if category.OnDevice() && ev.TS == 0 && row.Dur == 0 {
		// CUPTI writes zeros when it could not time an activity.
		rd.diags.Addf("untimed-device-event", diagnostic.NoRank, ev.Offset, "%q has time 0 and is left out", ev.Name)
		return
	}
	switch {
	case category.OnDevice(), category == trace.Runtime, category == trace.Sync:
		rd.readDeviceArgs(ev, &row)
	}
	i := rd.rank.Events.Append(row)
	switch category {
	case trace.CPUOp, trace.UserAnnotation:
		rd.addCPU(ev, i)
	case trace.Kernel, trace.CollectiveActivity:
		if _, ok := ev.Args.Get("Collective name"); ok {
			rec := record{event: i, kind: kernelRecord}
			rec.readArgs(ev.Args)
			rd.records = append(rd.records, rec)
		}
	}
}

// readDeviceArgs reads what joins device events to launches and streams.
func (rd *reading) readDeviceArgs(ev *chrome.Event, row *trace.Row) {
	ev.Args.Each(func(key []byte, v chrome.Value) bool {
		switch string(key) {
		case "correlation":
			if n, ok := v.Int(); ok {
				row.Correlation = n
			}
		case "stream":
			if n, ok := v.Int(); ok {
				row.Stream = n
			}
		case "device":
			if n, ok := v.Int(); ok {
				row.Device = int32(n)
			}
		}
		return true
	})
	if row.Category.OnDevice() && row.Stream == trace.NoStream {
		// Generations up to 1.12 name the stream in tid only: "stream 7".
		tid := strings.TrimPrefix(ev.TID.String(), "stream ")
		if n, err := strconv.ParseInt(tid, 10, 64); err == nil {
			row.Stream = n
		}
	}
}

// addCPU keeps what CPU events say about communication and steps.
func (rd *reading) addCPU(ev *chrome.Event, i int) {
	if kind, ok := recordKindOf(ev.Name); ok {
		rec := record{event: i, kind: kind, name: string(ev.Name)}
		rec.readArgs(ev.Args)
		rd.records = append(rd.records, rec)
		return
	}
	if number, ok := stepNumber(ev.Name); ok {
		rd.rank.Steps = append(rd.rank.Steps, trace.Step{
			Name: string(ev.Name), Number: number, Start: ev.TS, End: ev.TS + max(ev.Dur, 0),
		})
		return
	}
	if string(ev.Name) == "_c10d_functional::wait_tensor" {
		rd.rank.Waits = append(rd.rank.Waits, trace.Wait{TS: ev.TS, Thread: rd.rank.Events.Thread[i]})
	}
}

const stepPrefix = "ProfilerStep#"

func stepNumber(name []byte) (int, bool) {
	if len(name) <= len(stepPrefix) || string(name[:len(stepPrefix)]) != stepPrefix {
		return 0, false
	}
	n, err := strconv.Atoi(string(name[len(stepPrefix):]))
	return n, err == nil
}

func (rd *reading) thread(ev *chrome.Event) trace.ThreadID {
	k := threadKey{ev.PID, ev.TID}
	id, ok := rd.threads[k]
	if !ok {
		id = trace.ThreadID(len(rd.rank.Threads))
		rd.threads[k] = id
		rd.rank.Threads = append(rd.rank.Threads, trace.Thread{PID: ev.PID.String(), TID: ev.TID.String()})
	}
	return id
}

// nameThread keeps a thread's name; a thread named twice keeps the name of a
// process group's worker, because forks inherit their parent's name first.
func (rd *reading) nameThread(id trace.ThreadID, name string) {
	if have := rd.threadNames[id]; strings.Contains(have, glooThread) {
		return
	}
	rd.threadNames[id] = name
}

// readMetadata takes the job's description and moves all times to absolute
// ones: since May 2024 they are written relative to baseTimeNanoseconds.
func (rd *reading) readMetadata(m *chrome.Metadata) {
	rank := rd.rank
	rank.Rank = -1
	if v, ok := m.Get("baseTimeNanoseconds"); ok {
		if base, ok := v.Int(); ok {
			rd.shift(base)
		}
	}
	info, ok := m.Get("distributedInfo")
	if !ok {
		return
	}
	info.Fields(func(key []byte, v chrome.Value) bool {
		switch string(key) {
		case "rank":
			if n, ok := v.Int(); ok && n >= 0 && n < 1<<30 {
				rank.Rank, rank.RankFrom = int(n), "distributedInfo"
			}
		case "world_size":
			if n, ok := v.Int(); ok && n > 0 && n < 1<<30 {
				rank.Distributed.WorldSize = int(n)
			}
		case "backend":
			rank.Distributed.Backend = text(v)
		case "pg_config":
			rank.Distributed.Groups = readGroups(v)
		}
		return true
	})
}

func readGroups(v chrome.Value) []comm.Group {
	var groups []comm.Group
	v.Each(func(entry chrome.Value) bool {
		var g comm.Group
		entry.Fields(func(key []byte, v chrome.Value) bool {
			switch string(key) {
			case "pg_name":
				g.Name = text(v)
				if n, ok := v.Int(); ok && g.Name == "" {
					g.Name = strconv.FormatInt(n, 10)
				}
			case "pg_desc":
				if s := text(v); s != "undefined" {
					g.Description = s
				}
			case "pg_size", "group_size":
				if n, ok := v.Int(); ok {
					g.Size = int(n)
				}
			case "ranks":
				v.Each(func(r chrome.Value) bool {
					if n, ok := r.Int(); ok {
						g.Ranks = append(g.Ranks, int(n))
					}
					return true
				})
				if list, whole := parseInts(text(v)); whole && g.Ranks == nil {
					for _, n := range list {
						g.Ranks = append(g.Ranks, int(n))
					}
				}
			}
			return true
		})
		if g.Size == 0 {
			g.Size = len(g.Ranks)
		}
		groups = append(groups, g)
		return true
	})
	return groups
}

func (rd *reading) shift(base int64) {
	for i := range rd.rank.Events.TS {
		rd.rank.Events.TS[i] += base
	}
	for i := range rd.rank.Steps {
		rd.rank.Steps[i].Start += base
		rd.rank.Steps[i].End += base
	}
	for i := range rd.rank.Waits {
		rd.rank.Waits[i].TS += base
	}
}
