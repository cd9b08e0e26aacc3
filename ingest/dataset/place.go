package dataset

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mixdown/ingest/remote"
)

// Place is where a dataset is: a folder, or a prefix of an object store. Paths in
// it are relative, with slashes.
type Place interface {
	// String is the place as it may be shown.
	String() string

	name(path string) string // to show
	// read returns a whole file of at most limit bytes.
	read(path string, limit int64) ([]byte, error)
	// list returns the names in a folder; a folder that is missing is empty.
	list(folder string) ([]string, error)
	// put makes a finished file that of the path, at once; the file may be gone
	// then.
	put(path, file string) error
	// remove removes a file; that it is missing is no error.
	remove(path string) error
	// staging makes a folder for files that are put here later.
	staging(pattern string) (string, error)
	// empty tells whether nothing but parts of a dataset is here.
	empty() (bool, error)
}

// At is the place of the given name: of an object store if it is that of one, else
// a folder.
func At(name string, client *remote.Client) Place {
	if remote.Is(name) {
		return bucket{strings.TrimRight(name, "/"), client}
	}
	return Folder(name)
}

// Folder is a place on disk.
type Folder string

// String implements Place.
func (f Folder) String() string { return string(f) }

func (f Folder) name(path string) string { return filepath.Join(string(f), filepath.FromSlash(path)) }

func (f Folder) read(path string, limit int64) ([]byte, error) {
	file, err := os.Open(f.name(path))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.Size() > limit:
		return nil, fmt.Errorf("%s has %d bytes, more than the %d expected", f.name(path), info.Size(), limit)
	}
	data := make([]byte, info.Size())
	_, err = io.ReadFull(file, data)
	return data, err
}

func (f Folder) list(folder string) ([]string, error) {
	entries, err := os.ReadDir(f.name(folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

func (f Folder) put(path, file string) error {
	if err := os.MkdirAll(filepath.Dir(f.name(path)), 0o755); err != nil {
		return err
	}
	return os.Rename(file, f.name(path))
}

// remove removes the folder of a file too, when nothing else is in it.
func (f Folder) remove(path string) error {
	err := os.Remove(f.name(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if strings.Contains(filepath.Base(filepath.Dir(f.name(path))), rankPrefix) {
		_ = os.Remove(filepath.Dir(f.name(path))) // not empty: something of others
	}
	return nil
}

func (f Folder) staging(pattern string) (string, error) {
	return os.MkdirTemp(f.name(incompleteFolder), pattern)
}

func (f Folder) empty() (bool, error) {
	names, err := f.list("")
	for _, n := range names {
		// Another task may have begun, or been stopped, before it said what
		// this is.
		if n != incompleteFolder && n != markerFolder && n != taskFolder && n != viewFolder {
			return false, err
		}
	}
	return true, err
}

// bucket is a place in an object store. Files are written there by one request
// each, so that they are whole or not there.
type bucket struct {
	prefix string // without a slash at its end
	client *remote.Client
}

// String implements Place.
func (b bucket) String() string { return remote.Redact(b.prefix) }

func (b bucket) name(path string) string { return remote.Join(b.prefix, path) }

func (b bucket) read(path string, limit int64) ([]byte, error) {
	return b.client.ReadAll(b.name(path), limit)
}

func (b bucket) list(folder string) ([]string, error) {
	prefix := b.name(folder) + "/"
	var names []string
	err := b.client.List(prefix, func(o remote.Object) bool {
		if name := strings.TrimPrefix(o.Name, prefix); !strings.Contains(name, "/") {
			names = append(names, name)
		}
		return true
	})
	return names, err
}

func (b bucket) put(path, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return b.client.Write(b.name(path), f, info.Size())
}

func (b bucket) remove(path string) error { return b.client.Remove(b.name(path)) }

// staging is on this machine: libraries want to know a body's length and sum
// before they send it.
func (b bucket) staging(pattern string) (string, error) {
	return os.MkdirTemp("", "mixdown-"+pattern)
}

func (b bucket) empty() (bool, error) {
	empty := true
	err := b.client.List(b.prefix+"/", func(o remote.Object) bool {
		below := strings.TrimPrefix(o.Name, b.prefix+"/")
		empty = strings.HasPrefix(below, markerFolder+"/") || strings.HasPrefix(below, taskFolder+"/") || strings.HasPrefix(below, viewFolder+"/")
		return empty
	})
	return empty, err
}
