package source

import (
	"archive/tar"
	"archive/zip"
	"errors"
	"fmt"
	"io"
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
func (f *finder) archive(s stored, kind archiveType) error {
	before := len(f.files)
	var err error
	if kind == zipArchive {
		err = f.zip(s)
	} else {
		err = f.tar(s)
	}
	if err != nil {
		return err
	}
	if len(f.files) == before {
		return noTraces(s.name)
	}
	return nil
}

// directory opens a zip archive.
func directory(s stored) (*zip.Reader, io.Closer, error) {
	r, size, err := s.random()
	if err != nil {
		return nil, nil, err
	}
	z, err := zip.NewReader(r, size)
	if err != nil {
		r.Close()
		return nil, nil, err
	}
	return z, r, nil
}

func (f *finder) zip(s stored) error {
	z, done, err := directory(s)
	if err != nil {
		return fmt.Errorf("cannot read archive: %s: %w", s.name, err)
	}
	defer done.Close()
	for i, m := range z.File {
		if !m.Mode().IsRegular() || !traceName(m.Name) {
			continue
		}
		err := f.add(File{Name: memberName(s.name, m.Name), Size: int64(m.CompressedSize64), Modified: s.modified, Version: s.version,
			open: func() (io.ReadCloser, error) { return openZip(s, i) }})
		if err != nil {
			return err
		}
	}
	return nil
}

// openZip opens the member with the given index. Each member has a handle of
// its own, so members can be read at the same time.
func openZip(s stored, index int) (io.ReadCloser, error) {
	z, done, err := directory(s)
	if err != nil {
		return nil, err
	}
	if index >= len(z.File) {
		done.Close()
		return nil, fmt.Errorf("%s has changed", s.name)
	}
	m, err := z.File[index].Open()
	if err != nil {
		done.Close()
		return nil, err
	}
	return &member{m, func() error { return errors.Join(m.Close(), done.Close()) }}, nil
}

func (f *finder) tar(s stored) error {
	t, done, err := openTar(s, f.opts)
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
		err = f.add(File{Name: memberName(s.name, h.Name), Size: h.Size, Modified: s.modified, Version: s.version,
			open: func() (io.ReadCloser, error) { return f.openMember(s, i) }})
		if err != nil {
			return err
		}
	}
}

// openTar begins to read a tar archive, compressed or not.
func openTar(s stored, opts Options) (*tar.Reader, func() error, error) {
	file, err := s.open()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open archive: %w", err)
	}
	r, err := decompress(s.name, file, opts)
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return tar.NewReader(r), r.Close, nil
}

// openMember opens the tar member with the given index. A tar archive has no
// directory: all before the member is read again.
func (f *finder) openMember(s stored, index int) (io.ReadCloser, error) {
	t, done, err := openTar(s, f.opts)
	if err != nil {
		return nil, err
	}
	for i := 0; i <= index; i++ {
		if _, err := t.Next(); err != nil {
			done()
			return nil, fmt.Errorf("%s: %w", s.name, unexpected(err))
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
