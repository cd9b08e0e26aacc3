package export

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"mixdown/ingest/remote"
)

// ErrTarget: a file or folder to be written can't be.
var ErrTarget = errors.New("can't write")

// temporary begins the names of files that are not whole yet.
const temporary = ".mixdown-"

// CheckFile says whether a file can be written, before hours of reading: its
// folder exists and takes files.
func CheckFile(name string) error {
	if remote.Is(name) {
		return checkRemote(name)
	}
	name, special, err := resolve(name)
	if err != nil || special {
		return err
	}
	f, err := createBeside(name)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, reason(err))
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// WriteFile writes a file, or an object of a store, through write and gives it its
// name when it is whole. Devices and pipes are written directly.
func WriteFile(name string, write func(io.Writer) error) (err error) {
	if remote.Is(name) {
		return writeObject(name, write)
	}
	name, special, err := resolve(name)
	if err != nil {
		return err
	}
	var f *os.File
	if special {
		f, err = os.OpenFile(name, os.O_WRONLY, 0)
	} else {
		f, err = createBeside(name)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, reason(err))
	}
	if !special {
		defer func() {
			if err != nil {
				err = errors.Join(err, os.Remove(f.Name()))
			}
		}()
	}
	b := bufio.NewWriterSize(f, 1<<20)
	err = write(b)
	if err == nil {
		err = b.Flush()
	}
	if err = errors.Join(err, f.Close()); err != nil || special {
		return err
	}
	return os.Rename(f.Name(), name)
}

// createBeside makes a file in the folder of name, readable by whom the user's
// umask lets: os.CreateTemp's would be the owner's alone.
func createBeside(name string) (*os.File, error) {
	temp := fmt.Sprintf("%s%016x", temporary, rand.Uint64())
	return os.OpenFile(filepath.Join(filepath.Dir(name), temp), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

// resolve follows a link to what is to be written, and says whether that is
// something else than a file.
func resolve(name string) (string, bool, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return name, false, nil
	case err != nil:
		return "", false, fmt.Errorf("%w: %w", ErrTarget, reason(err))
	case info.IsDir():
		return "", false, fmt.Errorf("%w: %s is a folder", ErrTarget, name)
	case !info.Mode().IsRegular():
		return name, true, nil
	}
	name, err = filepath.EvalSymlinks(name)
	return name, false, err
}

// reason leaves the temporary name out of an error.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", filepath.Dir(p.Path), p.Err)
	}
	return err
}

// CheckFolder says whether a folder of tables can be written: it does not exist,
// is empty, or holds tables that this package wrote and nothing else.
func CheckFolder(dir string) error {
	if remote.Is(dir) {
		_, err := checkPrefix(remote.New(context.Background(), remote.Options{}), dir)
		return err
	}
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("%w: %w", ErrTarget, err)
	case len(entries) > 0 && !isExport(dir, entries):
		return fmt.Errorf("%w: %s holds something else: name a new folder", ErrTarget, dir)
	}
	if dir, err = absolute(dir); err != nil {
		return err
	}
	return CheckFile(filepath.Join(filepath.Dir(dir), temporary+"check")) // the folder is made beside its place
}

// absolute is the path of a folder that can be renamed: not ".", and no link.
func absolute(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return dir, nil
	}
	return real, err
}

// isExport tells tables of this package from other people's files, which are
// never removed.
func isExport(dir string, entries []fs.DirEntry) bool {
	data, err := os.ReadFile(filepath.Join(dir, descriptionFile))
	var d description
	if err != nil || json.Unmarshal(data, &d) != nil || d.Format == "" || d.SchemaVersion == 0 {
		return false
	}
	own := map[string]bool{descriptionFile: true}
	for _, t := range d.Tables {
		own[t.Name] = true
	}
	for _, e := range entries {
		if !own[e.Name()] {
			return false
		}
	}
	return true
}

// writeFolder has write fill a new folder and puts it in the place of dir.
func writeFolder(dir string, write func(tmp string) error) (err error) {
	if remote.Is(dir) {
		return writePrefix(dir, write)
	}
	if err := CheckFolder(dir); err != nil {
		return err
	}
	if dir, err = absolute(dir); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), temporary)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTarget, reason(err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	fresh, old := filepath.Join(tmp, "new"), filepath.Join(tmp, "old")
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return err
	}
	if err := write(fresh); err != nil {
		return err
	}
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		// The old one is better than none.
		return errors.Join(err, os.Rename(old, dir))
	}
	return nil
}
