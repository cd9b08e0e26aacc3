package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"github.com/klauspost/compress/gzip"

	"mixdown/ingest/chrome"
)

// shift is what each repetition adds to the time stamps, µs.
const shift = 3_000_000

// makeTraces returns the files of a case, gzipped, and the first one
// decompressed. Those of an earlier run are taken as they are.
func makeTraces(o options, c workload) (packed []string, plain string, err error) {
	dir := filepath.Join(o.cache, c.name)
	plain = filepath.Join(dir, "rank0.json")
	for i := range c.files {
		packed = append(packed, filepath.Join(dir, "gz", fmt.Sprintf("rank%d.json.gz", i)))
	}
	if exists(packed[len(packed)-1]) {
		return packed, plain, nil
	}
	if err := os.MkdirAll(filepath.Join(dir, "gz"), 0o755); err != nil {
		return nil, "", err
	}
	f, err := os.Open(filepath.Join(o.corpus, c.from))
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, "", err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return nil, "", err
	}
	long, err := repeated(text, c.repeat)
	if err != nil {
		return nil, "", err
	}
	var small bytes.Buffer
	w, err := gzip.NewWriterLevel(&small, 6)
	if err != nil {
		return nil, "", err
	}
	w.Write(long)
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	if err := os.WriteFile(plain, long, 0o644); err != nil {
		return nil, "", err
	}
	for _, name := range packed {
		// Under another name first, so that a run that was stopped leaves none.
		if err := os.WriteFile(name+".part", small.Bytes(), 0o644); err != nil {
			return nil, "", err
		}
		if err := os.Rename(name+".part", name); err != nil {
			return nil, "", err
		}
	}
	return packed, plain, nil
}

var timeStamp = regexp.MustCompile(`"ts": ?\d+`)

// repeated returns the trace with its events n times, one after the other. What
// is not a time stamp stays as it is written.
func repeated(text []byte, n int) ([]byte, error) {
	start, last := int64(-1), int64(0)
	for r := chrome.NewReader(bytes.NewReader(text), chrome.Options{}); ; {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if start < 0 {
			start = ev.Offset
		}
		last = ev.End
	}
	if start < 0 {
		return nil, errors.New("no events")
	}
	body := text[start:last]
	stamps := timeStamp.FindAllIndex(body, -1)
	out := bytes.NewBuffer(make([]byte, 0, len(text)*n+len(text)))
	out.Write(text[:start])
	for i := range n {
		if i > 0 {
			out.WriteString(",\n")
		}
		from := 0
		for _, s := range stamps {
			digits := s[0] + bytes.LastIndexAny(body[s[0]:s[1]], ": ") + 1
			t, err := strconv.ParseInt(string(body[digits:s[1]]), 10, 64)
			if err != nil {
				return nil, err
			}
			out.Write(body[from:digits])
			out.WriteString(strconv.FormatInt(t+int64(i)*shift, 10))
			from = s[1]
		}
		out.Write(body[from:])
	}
	out.Write(text[last:])
	return out.Bytes(), nil
}
