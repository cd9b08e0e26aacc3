package source

import (
	"fmt"
	"io"
	"path"
	"strings"
	"sync"

	"mixdown/ingest/remote"
)

// stored is where the bytes of a file come from, as stored.
type stored struct {
	name string // to show
	open func() (io.ReadCloser, error)
	// random opens the file for reading anywhere; its size follows.
	random func() (randomAccess, int64, error)

	modified int64 // as in File
	version  string
}

// randomAccess is an open file that can be read anywhere.
type randomAccess interface {
	io.ReaderAt
	io.Closer
}

// client is what reads remote files, made when the first is met.
func (f *finder) client() *remote.Client {
	if f.opts.Remote == nil {
		f.opts.Remote = remote.New(f.opts.context(), remote.Options{})
	}
	return f.opts.Remote
}

// remote adds an object, or all below a prefix, or what a pattern matches.
func (f *finder) remote(arg string) error {
	if !remote.Listable(arg) {
		return f.address(arg)
	}
	scheme, rest, _ := strings.Cut(arg, "://")
	_, key, _ := strings.Cut(rest, "/")
	if i := strings.IndexAny(key, "*?["); i >= 0 {
		return f.pattern(arg, arg[:len(arg)-len(key)+i])
	}
	if key != "" && !strings.HasSuffix(key, "/") {
		o, err := f.client().Stat(arg)
		if err == nil {
			return f.objects(arg, []remote.Object{o}, func(string) bool { return true })
		}
		if !remote.IsNotFound(err) {
			return err
		}
	}
	prefix := strings.TrimRight(arg, "/") + "/"
	if key == "" {
		bucket, _, _ := strings.Cut(rest, "/")
		prefix = scheme + "://" + bucket + "/"
	}
	list, err := f.list(prefix)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return fmt.Errorf("%w: nothing is stored at %s or below %s: check the name; for all that begin with it: '%s*'",
			ErrNoTraces, arg, prefix, strings.TrimRight(arg, "/"))
	}
	return f.objects(prefix, list, func(string) bool { return false })
}

// pattern adds what a pattern matches: objects, and all below what it matches as
// a folder. Listing goes as far as fixed.
func (f *finder) pattern(arg, fixed string) error {
	if _, err := path.Match(arg, ""); err != nil {
		return fmt.Errorf("bad pattern %s: %w", arg, err)
	}
	all, err := f.list(fixed)
	if err != nil {
		return err
	}
	depth := strings.Count(arg, "/")
	whole := map[string]bool{}
	var list []remote.Object
	for _, o := range all {
		folder := o.Name
		if strings.Count(folder, "/") > depth {
			folder = strings.Join(strings.SplitN(folder, "/", depth+2)[:depth+1], "/")
		}
		// A name with brackets that exists is a name; only others are patterns.
		if matched, _ := path.Match(arg, folder); matched || o.Name == arg {
			list = append(list, o)
			whole[o.Name] = folder == o.Name
		}
	}
	if len(list) == 0 {
		return fmt.Errorf("%w: no object matches %s", ErrNoTraces, arg)
	}
	return f.objects(arg, list, func(name string) bool { return whole[name] })
}

// list returns the objects below a prefix that are not hidden.
func (f *finder) list(prefix string) ([]remote.Object, error) {
	var list []remote.Object
	err := f.client().List(prefix, func(o remote.Object) bool {
		below := strings.TrimPrefix(o.Name, prefix)
		if !strings.HasSuffix(o.Name, "/") && !strings.HasPrefix(below, ".") && !strings.Contains(below, "/.") {
			list = append(list, o)
		}
		return len(list) <= f.opts.MaxFiles*maxOthers
	})
	if err == nil && len(list) > f.opts.MaxFiles*maxOthers {
		err = fmt.Errorf("%w: more than %d objects in %s", ErrLimit, f.opts.MaxFiles*maxOthers, prefix)
	}
	return list, err
}

// maxOthers is how many times more objects than traces a listing may have.
const maxOthers = 16

// objects adds those objects that are traces, or were named themselves.
func (f *finder) objects(where string, list []remote.Object, explicit func(name string) bool) error {
	heads := f.heads(list, func(o remote.Object) bool {
		return !traceName(o.Name) && !strings.HasSuffix(o.Name, ".parquet") || len(list) == 1
	})
	n := 0
	for i, o := range list {
		if !explicit(o.Name) && !traceName(o.Name) && archiveKind(heads[i]) == noArchive && !traceHead(heads[i]) {
			continue
		}
		n++
		if f.seen[o.Name] {
			continue
		}
		f.seen[o.Name] = true
		s := f.remoteStored(o.Name, o.Name, o)
		if kind := archiveKind(heads[i]); kind != noArchive {
			if err := f.archive(s, kind); err != nil {
				return err
			}
			continue
		}
		file := File{Name: o.Name, Explicit: explicit(o.Name), Size: o.Size, Modified: s.modified, Version: s.version, open: s.open}
		if err := f.add(file); err != nil {
			return err
		}
	}
	if n == 0 {
		return noTraces(where)
	}
	return nil
}

// headReaders is how many objects are looked into at once.
const headReaders = 16

// heads reads the heads of those objects that want wants.
func (f *finder) heads(list []remote.Object, want func(remote.Object) bool) [][]byte {
	heads := make([][]byte, len(list))
	client := f.client()
	var wg sync.WaitGroup
	slots := make(chan struct{}, headReaders)
	for i, o := range list {
		if !want(o) {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			heads[i] = headOf(func() (io.ReadCloser, error) { return client.Open(o.Name) }, o.Name)
			<-slots
		})
	}
	wg.Wait()
	return heads
}

// address adds what a web address gives. Its name is shown without the query,
// which may be the key to it.
func (f *finder) address(arg string) error {
	if f.seen[arg] {
		return nil
	}
	f.seen[arg] = true
	o, err := f.client().Stat(arg)
	if err != nil {
		return err
	}
	name := o.Name
	for n := 2; f.seen[name] && name != arg || f.shown[name]; n++ {
		name = fmt.Sprintf("%s#%d", o.Name, n) // differs in what is not shown
	}
	f.shown[name] = true
	s := f.remoteStored(arg, name, o)
	head := headOf(s.open, name)
	if kind := archiveKind(head); kind != noArchive {
		return f.archive(s, kind)
	}
	return f.add(File{Name: name, Explicit: true, Size: o.Size, Modified: s.modified, Version: s.version, open: s.open})
}

// remoteStored is the object of the given name, shown as another.
func (f *finder) remoteStored(object, shown string, o remote.Object) stored {
	client := f.client()
	modified := int64(0)
	if !o.Modified.IsZero() {
		modified = o.Modified.UnixNano()
	}
	return stored{
		name: shown, modified: modified, version: o.Version,
		open: func() (io.ReadCloser, error) { return client.Open(object) },
		random: func() (randomAccess, int64, error) {
			o, err := client.Stat(object)
			if err != nil {
				return nil, 0, err
			}
			if o.Size < 0 {
				return nil, 0, fmt.Errorf("%s: the server does not say how long this archive is: fetch it first", shown)
			}
			return &ranges{client: client, object: object}, o.Size, nil
		},
	}
}

// ranges reads an object anywhere. Reads that follow each other, as those of one
// member of an archive do, share a stream.
type ranges struct {
	client *remote.Client
	object string

	mu     sync.Mutex
	stream *remote.Stream
	next   int64 // byte that the stream gives next
}

// ReadAt implements io.ReaderAt.
func (r *ranges) ReadAt(p []byte, off int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stream == nil || r.next != off {
		r.hangUp()
		s, err := r.client.OpenAt(r.object, off)
		if err != nil {
			return 0, err
		}
		r.stream, r.next = s, off
	}
	n, err := io.ReadFull(r.stream, p)
	r.next += int64(n)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}

func (r *ranges) hangUp() {
	if r.stream != nil {
		r.stream.Close()
		r.stream = nil
	}
}

// Close implements io.Closer.
func (r *ranges) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hangUp()
	return nil
}
