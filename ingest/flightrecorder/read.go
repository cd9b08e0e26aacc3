package flightrecorder

import (
	"errors"
	"fmt"
	"io"

	"mixdown/ingest/diagnostic"
	"mixdown/ingest/source"
)

// Read reads a dump, decompressed: a pickle or JSON. Damage is counted in the
// dump's diagnostics. An error means that r holds no dump, is a pickle of more
// than plain data (ErrUnsafePickle), or could not be read.
func Read(r io.Reader, name string, opts Options) (*Dump, error) {
	d := &Dump{Source: name, Rank: diagnostic.NoRank}
	if err := d.read(r, opts.withDefaults()); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return d, nil
}

func (d *Dump) read(r io.Reader, opts Options) error {
	if opts.RanksFrom != nil {
		if n, ok := source.RankFromRegexp(opts.RanksFrom, d.Source); ok {
			d.Rank, d.RankFrom = n, "--ranks-from"
		}
	} else if n, _, ok := source.RankFromName(d.Source); ok {
		d.Rank, d.RankFrom = n, "file name"
	}
	data, readErr := io.ReadAll(io.LimitReader(r, opts.MaxBytes+1))
	switch {
	case readErr != nil && (len(data) == 0 || !errors.Is(readErr, io.ErrUnexpectedEOF)):
		return readErr
	case int64(len(data)) > opts.MaxBytes:
		return fmt.Errorf("%w: more than %d bytes", ErrLimit, opts.MaxBytes)
	case len(data) == 0:
		return ErrEmpty
	}
	v, cut, err := d.value(data, opts)
	if err != nil {
		return err
	}
	if cut != nil {
		d.Truncated = true
		d.Diagnostics.Addf(CodeTruncated, d.Rank, int64(len(data)), "%v", cut)
	}
	return d.fill(v, opts)
}

// value reads the plain data of either form; cut says why it is incomplete.
func (d *Dump) value(data []byte, opts Options) (v value, cut, err error) {
	switch first := firstByte(data); {
	case first == '{', first == '[', first == 0xef:
		return readJSON(trimBOM(data), opts)
	case data[0] == opProto, data[0] == opMark, data[0] == opEmptyDict, data[0] == opEmptyList, refused[data[0]] != "":
		v, isCut, err := readPickle(data, opts)
		if isCut && err == nil {
			cut = errCut
		}
		return v, cut, err
	}
	return nil, nil, fmt.Errorf("%w: neither a pickle nor JSON", ErrNotDump)
}

func trimBOM(data []byte) []byte {
	if len(data) >= 3 && string(data[:3]) == "\xef\xbb\xbf" {
		return data[3:]
	}
	return data
}

// firstByte returns the first byte that is no white space.
func firstByte(data []byte) byte {
	for _, c := range data {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return c
		}
	}
	return 0
}

// fill takes the fields of a dump.
func (d *Dump) fill(v value, opts Options) error {
	var entries value
	r := newFiller(d, opts)
	switch top := v.(type) {
	case *dict:
		if top.get("entries") == nil && top.get("pg_config") == nil && top.get("pg_status") == nil && top.get("version") == nil {
			return fmt.Errorf("%w: it has none of the keys of one", ErrNotDump)
		}
		d.Version = d.text(top, "version")
		d.CommVersion = d.text(top, "comm_lib_version")
		entries = top.get("entries")
		if err := r.entries(entries, opts); err != nil {
			return err
		}
		if err := r.describeGroups(top.get("pg_config"), top.get("pg_status")); err != nil {
			return err
		}
	case *list, tuple:
		// A list of entries alone, as the oldest dumps are.
		entries = v
		if err := r.entries(entries, opts); err != nil {
			return err
		}
		if len(d.Entries) == 0 {
			return fmt.Errorf("%w: a list without entries", ErrNotDump)
		}
	default:
		return fmt.Errorf("%w: a single %s", ErrNotDump, kindOf(v))
	}
	if entries == nil {
		d.note(CodeNoEntries, "no entries")
	}
	return nil
}

func (d *Dump) note(code, format string, args ...any) {
	d.Diagnostics.Addf(code, d.Rank, diagnostic.NoOffset, format, args...)
}

// badField counts a value that cannot be used.
func (d *Dump) badField(key string, v value) {
	d.note(CodeBadField, "%s is %s", key, kindOf(v))
}

func (d *Dump) text(m *dict, key string) string {
	switch v := m.get(key).(type) {
	case nil:
	case string:
		return v
	default:
		d.badField(key, v)
	}
	return ""
}

func (d *Dump) bool(m *dict, key string) bool {
	switch v := m.get(key).(type) {
	case nil:
	case bool:
		return v
	default:
		d.badField(key, v)
	}
	return false
}

func (d *Dump) int(m *dict, key string) Int {
	v := m.get(key)
	if v == nil {
		return Int{}
	}
	n, ok := intOf(v)
	if !ok {
		d.badField(key, v)
		return Int{}
	}
	return known(n)
}
