package source

import (
	"archive/tar"
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// archiveType is a kind of archive.
type archiveType uint8

const (
	noArchive archiveType = iota
	zipArchive
	tarArchive // compressed or not
)

// archiveKind tells what archive a file with the decompressed head b is.
func archiveKind(b []byte) archiveType {
	switch formatOf(b) {
	case zipped:
		return zipArchive
	case tarred:
		return tarArchive
	}
	return noArchive
}

// archive adds the traces inside an archive.
func (f *finder) archive(name string, kind archiveType) error {
	before := len(f.files)
	var err error
	if kind == zipArchive {
		err = f.zip(name)
	} else {
		err = f.tar(name)
	}
	if err != nil {
		return err
	}
	if len(f.files) == before {
		return noTraces(name)
	}
	return nil
}

func (f *finder) zip(name string) error {
	z, err := zip.OpenReader(name)
	if err != nil {
		return fmt.Errorf("cannot read archive: %s: %w", name, err)
	}
	defer z.Close()
	for i, m := range z.File {
		if !m.Mode().IsRegular() || !traceName(m.Name) {
			continue
		}
		err := f.add(File{Name: memberName(name, m.Name), Size: int64(m.CompressedSize64),
			open: func() (io.ReadCloser, error) { return openZip(name, i) }})
		if err != nil {
			return err
		}
	}
	return nil
}

// openZip opens the member with the given index. Each member has a handle of
// its own, so members can be read at the same time.
func openZip(name string, index int) (io.ReadCloser, error) {
	z, err := zip.OpenReader(name)
	if err != nil {
		return nil, err
	}
	if index >= len(z.File) {
		z.Close()
		return nil, fmt.Errorf("%s has changed", name)
	}
	m, err := z.File[index].Open()
	if err != nil {
		z.Close()
		return nil, err
	}
	return &member{m, func() error { return errors.Join(m.Close(), z.Close()) }}, nil
}

func (f *finder) tar(name string) error {
	t, done, err := openTar(name, f.opts)
	if err != nil {
		return err
	}
	defer done()
	for i := 0; ; i++ {
		h, err := t.Next()
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil // a cut archive has the members before the cut
		}
		if err != nil {
			return fmt.Errorf("cannot read archive: %w", err)
		}
		if h.Typeflag != tar.TypeReg || !traceName(h.Name) {
			continue
		}
		err = f.add(File{Name: memberName(name, h.Name), Size: h.Size,
			open: func() (io.ReadCloser, error) { return f.openMember(name, i) }})
		if err != nil {
			return err
		}
	}
}

// openTar begins to read a tar archive, compressed or not.
func openTar(name string, opts Options) (*tar.Reader, func() error, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open archive: %w", err)
	}
	r, err := decompress(name, file, opts)
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return tar.NewReader(r), r.Close, nil
}

// openMember opens the tar member with the given index. A tar archive has no
// directory: all before the member is read again.
func (f *finder) openMember(name string, index int) (io.ReadCloser, error) {
	t, done, err := openTar(name, f.opts)
	if err != nil {
		return nil, err
	}
	for i := 0; i <= index; i++ {
		if _, err := t.Next(); err != nil {
			done()
			return nil, fmt.Errorf("%s: %w", name, unexpected(err))
		}
	}
	return &member{t, done}, nil
}

// member is an open member of an archive.
type member struct {
	io.Reader
	close func() error
}

func (m *member) Close() error { return m.close() }

// memberName is what a member is called in messages. Members are never written
// to disk, so a name that climbs out of the archive is only misleading: the
// climbing is left out.
func memberName(archive, name string) string {
	name = path.Clean("/" + strings.ReplaceAll(name, `\`, "/"))
	return archive + "!" + strings.TrimPrefix(name, "/")
}
