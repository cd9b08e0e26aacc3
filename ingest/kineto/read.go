package kineto

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"mixdown/ingest/chrome"
	"mixdown/ingest/comm"
	"mixdown/ingest/diagnostic"
	"mixdown/ingest/trace"
)

// reading is the state of reading one file.
type reading struct {
	rank    *trace.Rank
	records []record // communication events, in file order

	threadNames map[trace.ThreadID]string // as the file's metadata events give them
	diags       diagnostic.Set
	edges       []edge          // begins and ends that are to be paired
	launches    *trace.Launches // what the correlations join, found by finish
	fix         Fix             // of device events that start before their launch
	dump        bool            // of a flight recorder: its communication is known already

	tables  *tables
	names   []trace.NameID   // in the rank, by number in tables; unnumbered when not met yet
	threads []trace.ThreadID // likewise
}

// unnumbered marks a name or thread that no part taken so far has.
const unnumbered = 1<<32 - 1

// readRank reads one file to its end. The rank number is still open: it is in
// the file's metadata or in its name. progress, when set, tells which share of
// the file has been read.
func readRank(r io.Reader, source string, limits chrome.Options, progress func() float64) (*reading, error) {
	rd := &reading{
		rank:        &trace.Rank{Source: source, Names: trace.NewStrings()},
		threadNames: map[trace.ThreadID]string{},
		tables:      newTables(),
	}
	workers := make([]*worker, max(limits.Workers, 1)+1)
	var mu sync.Mutex
	var free []*part
	recycle := func(s chrome.Sink) {
		p := s.(*part)
		p.reset()
		mu.Lock()
		free = append(free, p)
		mu.Unlock()
	}
	reader, err := chrome.Scan(r, limits, chrome.Sinks{
		New: func(n int) chrome.Sink {
			if workers[n] == nil {
				workers[n] = newWorker(rd.tables)
			}
			w := workers[n]
			w.epoch++
			mu.Lock()
			defer mu.Unlock()
			p := &part{}
			if k := len(free) - 1; k >= 0 {
				p, free = free[k], free[:k]
			}
			p.worker, p.epoch = w, w.epoch
			return p
		},
		Take: func(s chrome.Sink) {
			rd.take(s.(*part), progress)
			recycle(s)
		},
		Drop: recycle,
	})
	if err != nil {
		return nil, err
	}
	for _, d := range reader.Diagnostics() {
		rd.diags.Add(diagnostic.Diagnostic{Code: d.Code, Count: d.Count, Offset: d.Offset, Example: d.Example})
	}
	rd.rank.Truncated = reader.Truncated()
	rd.pairEdges() // before times are moved
	rd.readMetadata(reader.Metadata())
	rd.tables, rd.names, rd.threads = nil, nil, nil
	return rd, nil
}

// take adds the next part of the file. Names and threads get their numbers by
// first appearance, so these don't depend on who read what.
func (rd *reading) take(p *part, progress func() float64) {
	rank := rd.rank
	rank.Read += p.read
	for _, id := range p.names {
		for int(id) >= len(rd.names) {
			rd.names = append(rd.names, unnumbered)
		}
		if rd.names[id] == unnumbered {
			rd.names[id] = rank.Names.InternString(rd.tables.nameOf(id))
		}
	}
	for _, id := range p.threads {
		for int(id) >= len(rd.threads) {
			rd.threads = append(rd.threads, unnumbered)
		}
		if rd.threads[id] == unnumbered {
			k := rd.tables.threadOf(id)
			rd.threads[id] = trace.ThreadID(len(rank.Threads))
			rank.Threads = append(rank.Threads, trace.Thread{PID: k.pid.String(), TID: k.tid.String()})
		}
	}
	for i := range p.rows {
		row := &p.rows[i]
		row.Name, row.Thread = rd.names[row.Name], rd.threads[row.Thread]
	}
	base := rank.Events.Len()
	rd.makeRoom(len(p.rows), progress)
	rank.Events.AppendRows(p.rows)
	for _, rec := range p.records {
		rec.event += base
		rd.records = append(rd.records, rec)
	}
	rank.Steps = append(rank.Steps, p.steps...)
	for _, w := range p.waits {
		w.Thread = rd.threads[w.Thread]
		rank.Waits = append(rank.Waits, w)
	}
	rank.EventWaits = append(rank.EventWaits, p.eventWaits...)
	for _, e := range p.edges {
		if e.row >= 0 {
			e.row += base
		}
		e.thread = uint32(rd.threads[e.thread])
		rd.edges = append(rd.edges, e)
	}
	for _, t := range p.threadNames {
		rd.nameThread(trace.ThreadID(rd.threads[t.thread]), t.name)
	}
	rd.diags.Merge(&p.diags)
}

// minForecast is how many events are read before their number in the whole file
// is forecast from the share read.
const minForecast = 1 << 17

// makeRoom makes the columns longer. Doubling them would keep up to three times
// their size in memory, so where the share of the file that has been read is
// known, they get room for the rest at once, and some to spare.
func (rd *reading) makeRoom(n int, progress func() float64) {
	ev := &rd.rank.Events
	if ev.Len()+n <= ev.Cap() || ev.Len() < minForecast || progress == nil {
		return
	}
	if share := progress(); share > 0 && share <= 1 {
		forecast := float64(ev.Len()+n) / share * 1.25
		if forecast < 1<<31 {
			ev.Grow(int(forecast))
		}
	}
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
	if v, ok := m.Get("host_name"); ok {
		rank.Host = text(v)
	}
	if v, ok := m.Get("deviceProperties"); ok {
		rank.SMs, rank.GPU = readSMs(v), readGPUs(v)
	}
	rank.Versions = readVersions(m)
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

// readSMs is how many SMs each of the GPUs of a list has, 0 where they differ.
func readSMs(v chrome.Value) int {
	var sms int64
	same := true
	v.Each(func(gpu chrome.Value) bool {
		gpu.Fields(func(key []byte, v chrome.Value) bool {
			if n, ok := v.Int(); ok && string(key) == "numSms" {
				same = same && n > 0 && n <= maxSMs && (sms == 0 || sms == n)
				sms = n
			}
			return true
		})
		return true
	})
	if !same {
		return 0
	}
	return int(sms)
}

// readGPUs is the names of a list of GPUs, in order, each once.
func readGPUs(v chrome.Value) string {
	var names []string
	v.Each(func(gpu chrome.Value) bool {
		gpu.Fields(func(key []byte, v chrome.Value) bool {
			if name := text(v); string(key) == "name" && name != "" && len(names) < maxGPUs && !slices.Contains(names, name) {
				names = append(names, name)
			}
			return true
		})
		return true
	})
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// maxGPUs bounds the names of a machine's GPUs: it has one kind of them, or a few.
const maxGPUs = 16

// readVersions is what Kineto (libkineto/src/output_json.cpp) and PyTorch say of the
// software, nil when nothing.
func readVersions(m *chrome.Metadata) map[string]string {
	versions := map[string]string{}
	add := func(key string, v chrome.Value) {
		said := text(v)
		if n, ok := v.Int(); ok {
			said = strconv.FormatInt(n, 10)
		}
		if name, is := strings.CutSuffix(key, "_version"); is && said != "" {
			versions[strings.ReplaceAll(name, "_", " ")] = said
		}
	}
	for _, key := range []string{"cuda_runtime_version", "cuda_driver_version", "hip_runtime_version", "hip_driver_version", "cupti_version"} {
		if v, ok := m.Get(key); ok {
			add(key, v)
		}
	}
	if info, ok := m.Get("distributedInfo"); ok {
		info.Fields(func(key []byte, v chrome.Value) bool {
			if string(key) == "nccl_version" {
				add("nccl_version", v)
			}
			return true
		})
	}
	if len(versions) == 0 {
		return nil
	}
	return versions
}

// maxSMs is more than any GPU has.
const maxSMs = 1 << 16

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
