package export

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"mixdown/ingest/remote"
)

// checkRemote says whether objects can be written below a name. Whether the
// credentials allow it shows when they are.
func checkRemote(name string) error {
	if !remote.Listable(name) {
		return fmt.Errorf("%w: a web server takes no files: name a file, or s3://, gs:// or azblob://", ErrTarget)
	}
	return nil
}

// writeObject writes an object through write, at once when it is whole.
func writeObject(name string, write func(io.Writer) error) (err error) {
	if err := checkRemote(name); err != nil {
		return err
	}
	f, err := os.CreateTemp("", "mixdown-")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	b := bufio.NewWriterSize(f, 1<<20)
	if err := write(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	return put(remote.New(context.Background(), remote.Options{}), name, f)
}

// put writes a local file as an object.
func put(client *remote.Client, name string, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return client.Write(name, f, info.Size())
}

// checkPrefix says whether tables can be written below a prefix: nothing is there,
// or tables that this package wrote.
func checkPrefix(client *remote.Client, prefix string) (earlier []string, err error) {
	if err := checkRemote(prefix); err != nil {
		return nil, err
	}
	own := false
	prefix = remote.Join(prefix, "")
	err = client.List(prefix, func(o remote.Object) bool {
		earlier = append(earlier, o.Name)
		own = own || o.Name == prefix+descriptionFile
		return true
	})
	if err == nil && len(earlier) > 0 && !own {
		err = fmt.Errorf("%w: %s holds something else: name a new prefix", ErrTarget, prefix)
	}
	return earlier, err
}

// writePrefix has write fill a folder and puts its files below a prefix. The
// description is removed first and written last: tables without one are not whole.
func writePrefix(prefix string, write func(tmp string) error) (err error) {
	client := remote.New(context.Background(), remote.Options{})
	earlier, err := checkPrefix(client, prefix)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp("", "mixdown-")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	if err := write(tmp); err != nil {
		return err
	}
	about := remote.Join(prefix, descriptionFile)
	if len(earlier) > 0 {
		if err := client.Remove(about); err != nil {
			return err
		}
	}
	fresh := map[string]bool{about: true}
	upload := func(path string) error {
		below, err := filepath.Rel(tmp, path)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		name := remote.Join(prefix, filepath.ToSlash(below))
		fresh[name] = true
		return put(client, name, f)
	}
	err = filepath.WalkDir(tmp, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == filepath.Join(tmp, descriptionFile) {
			return err
		}
		return upload(path)
	})
	if err != nil {
		return err
	}
	// Tables of ranks or kinds that are no more.
	for _, name := range earlier {
		if !fresh[name] && strings.HasPrefix(name, remote.Join(prefix, "")) {
			if err := client.Remove(name); err != nil {
				return err
			}
		}
	}
	return upload(filepath.Join(tmp, descriptionFile))
}
