package source

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"mixdown/ingest/remote"
)

// Find returns the trace files that args stand for, in the order of args, each
// once. An argument is a file, a folder (searched with all below it, sorted by
// path), a glob, an archive (zip, tar, compressed tar) or "-"; or a web address, or an
// object, a prefix or a glob of an object store, see package remote.
//
// All arguments that do not work are reported together; then no files are
// returned. A folder, glob or archive without traces is one: ErrNoTraces.
func Find(args []string, opts Options) ([]File, error) {
	f := finder{opts: opts.withDefaults(), seen: map[string]bool{}, shown: map[string]bool{}}
	var errs []error
	for _, arg := range args {
		if err := f.arg(arg); err != nil {
			errs = append(errs, err)
			if errors.Is(err, ErrLimit) {
				break
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if len(f.files) == 0 {
		return nil, fmt.Errorf("%w: no input given", ErrNoTraces)
	}
	return f.files, nil
}

type finder struct {
	opts  Options
	files []File
	seen  map[string]bool // absolute paths, so that each file comes once
	shown map[string]bool // names of web addresses
}

func (f *finder) arg(arg string) error {
	if arg == "-" {
		return f.stdin()
	}
	if remote.Is(arg) {
		return f.remote(arg)
	}
	info, err := os.Stat(arg)
	if err == nil {
		return f.path(arg, info, true)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot read input: %w", err)
	}
	// A name with brackets that exists is a name; only others are patterns.
	if !strings.ContainsAny(arg, "*?[") {
		return fmt.Errorf("no such file or folder: %s: %w", arg, fs.ErrNotExist)
	}
	matches, err := filepath.Glob(arg)
	if err != nil {
		return fmt.Errorf("bad pattern %s: %w", arg, err)
	}
	if len(matches) == 0 {
		return fmt.Errorf("no file matches %s: %w", arg, fs.ErrNotExist)
	}
	before, known := len(f.files), 0
	for _, m := range matches {
		info, err := os.Stat(m)
		if err != nil {
			return fmt.Errorf("cannot read input: %w", err)
		}
		n := len(f.files)
		err = f.path(m, info, !info.IsDir())
		if err != nil && !errors.Is(err, ErrNoTraces) {
			return err
		}
		if err == nil && n == len(f.files) {
			known++
		}
	}
	if len(f.files) == before && known == 0 {
		return noTraces(arg)
	}
	return nil
}

func (f *finder) stdin() error {
	if f.opts.Stdin == nil {
		return errors.New("standard input is not available")
	}
	in := f.opts.Stdin
	if f.seen["-"] {
		return nil
	}
	f.seen["-"] = true
	return f.add(File{Name: "-", Explicit: true, Size: -1, open: func() (io.ReadCloser, error) {
		if in == nil {
			return nil, errors.New("standard input can be read once only")
		}
		r := in
		in = nil
		return io.NopCloser(r), nil
	}})
}

// path adds a file or folder that exists.
func (f *finder) path(name string, info fs.FileInfo, explicit bool) error {
	if info.IsDir() {
		return f.folder(name)
	}
	if f.known(name) {
		return nil
	}
	head := head(name)
	if kind := archiveKind(head); kind != noArchive {
		return f.archive(fileStored(name, info), kind)
	}
	return f.add(fileAt(name, info, explicit))
}

// fileStored is the file on disk called name.
func fileStored(name string, info fs.FileInfo) stored {
	return stored{
		name: name, modified: info.ModTime().UnixNano(),
		open: func() (io.ReadCloser, error) { return os.Open(name) },
		random: func() (randomAccess, int64, error) {
			file, err := os.Open(name)
			if err != nil {
				return nil, 0, err
			}
			info, err := file.Stat()
			if err != nil {
				file.Close()
				return nil, 0, err
			}
			return file, info.Size(), nil
		},
	}
}

// fileAt returns the file on disk called name.
func fileAt(name string, info fs.FileInfo, explicit bool) File {
	return File{Name: name, Explicit: explicit, Size: info.Size(), Modified: info.ModTime().UnixNano(), open: fileStored(name, info).open}
}

// folder adds the traces below a folder. Hidden folders are left out, and
// links to folders, which may lead in circles.
func (f *finder) folder(root string) error {
	type found struct {
		name string
		info fs.FileInfo
	}
	var all []found
	// The separator makes WalkDir follow a link to the folder itself.
	err := filepath.WalkDir(filepath.Clean(root)+string(filepath.Separator), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("cannot read folder: %w", err)
		}
		base := d.Name()
		if d.IsDir() {
			if strings.HasPrefix(base, ".") && base != "." && base != ".." && filepath.Clean(p) != filepath.Clean(root) {
				return fs.SkipDir
			}
			return nil
		}
		info, err := os.Stat(p) // follows links to files
		if err != nil || !info.Mode().IsRegular() || strings.HasPrefix(base, ".") {
			return nil
		}
		all = append(all, found{filepath.Clean(p), info})
		return nil
	})
	if err != nil {
		return err
	}
	sort.Slice(all, func(i, j int) bool { return all[i].name < all[j].name })
	n := 0
	for _, x := range all {
		archive := noArchive
		if !traceName(x.name) {
			h := head(x.name)
			if archive = archiveKind(h); archive == noArchive && !traceHead(h) {
				continue
			}
		}
		n++
		if f.known(x.name) {
			continue
		}
		if archive != noArchive {
			err := f.archive(fileStored(x.name, x.info), archive)
			switch {
			case errors.Is(err, ErrNoTraces):
				n--
			case errors.Is(err, ErrLimit):
				return err
			case err != nil:
				// A damaged archive among good files: Open tells about it.
				why := err
				err = f.add(File{Name: x.name, Size: x.info.Size(), Modified: x.info.ModTime().UnixNano(), open: func() (io.ReadCloser, error) { return nil, why }})
				if err != nil {
					return err
				}
			}
			continue
		}
		if err := f.add(fileAt(x.name, x.info, false)); err != nil {
			return err
		}
	}
	if n == 0 {
		return noTraces(root)
	}
	return nil
}

func noTraces(where string) error {
	return fmt.Errorf("%w in %s: expected *.json or *.json.gz as written by torch.profiler", ErrNoTraces, where)
}

// known tells whether the file was added before, and remembers it.
func (f *finder) known(name string) bool {
	abs, err := filepath.Abs(name)
	if err != nil {
		abs = name
	}
	if f.seen[abs] {
		return true
	}
	f.seen[abs] = true
	return false
}

func (f *finder) add(file File) error {
	if len(f.files) >= f.opts.MaxFiles {
		return fmt.Errorf("%w: more than %d files", ErrLimit, f.opts.MaxFiles)
	}
	file.limits = f.opts
	f.files = append(f.files, file)
	return nil
}

// traceName tells whether a file is called as traces are.
func traceName(name string) bool {
	base := strings.ToLower(filepath.Base(name))
	for _, packed := range []string{".gz", ".zst", ".zstd", ".bz2"} {
		base = strings.TrimSuffix(base, packed)
	}
	return strings.HasSuffix(base, ".json") || strings.HasSuffix(base, ".trace")
}

// sniffBytes is how much of a file is decompressed to see what it is. Kineto
// writes the properties of all devices before the first event.
const sniffBytes = 16 << 10

// head returns the first decompressed bytes of a file, as many as there are.
// What cannot be read has no head: opening it will say why.
func head(name string) []byte {
	return headOf(func() (io.ReadCloser, error) { return os.Open(name) }, name)
}

func headOf(open func() (io.ReadCloser, error), name string) []byte {
	file, err := open()
	if err != nil {
		return nil
	}
	r, err := decompress(name, file, Options{}.withDefaults())
	if err != nil {
		file.Close()
		return nil
	}
	defer r.Close()
	b := make([]byte, sniffBytes)
	n, _ := io.ReadFull(r, b)
	return b[:n]
}

// traceHead tells whether a file that begins with b looks like a trace.
func traceHead(b []byte) bool {
	b = bytes.TrimLeft(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), " \t\r\n")
	if len(b) == 0 || b[0] != '{' && b[0] != '[' {
		return false
	}
	for _, key := range []string{`"traceEvents"`, `"ph"`, `"schemaVersion"`} {
		if bytes.Contains(b, []byte(key)) {
			return true
		}
	}
	return false
}
