package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"mixdown/ingest/remote"
)

// Errors of this package. They come wrapped, with the name concerned.
var (
	// ErrNoTraces means that a folder, glob or archive holds no trace file.
	ErrNoTraces = errors.New("no trace files")

	// ErrEmpty means that a file has no bytes at all.
	ErrEmpty = errors.New("empty file")

	// ErrLimit means that one of the limits in Options was reached.
	ErrLimit = errors.New("limit reached")

	// ErrUnsupported means that a file is compressed in a way that this
	// package does not read.
	ErrUnsupported = errors.New("unsupported compression")
)

// Options bounds what Find and Open take. The zero value means the defaults.
type Options struct {
	MaxFiles int   // files that Find may return; default 100,000
	MaxBytes int64 // decompressed bytes of one file; default 64 GiB
	MaxRatio int64 // decompressed / compressed bytes, beyond the first 256 MiB; default 250

	// Stdin is what the argument "-" reads. Without it, "-" is an error.
	Stdin io.Reader

	// Remote reads what is not a file. Without it a client is made when one is
	// needed, whose requests end with Context (nil: never).
	Remote  *remote.Client
	Context context.Context
}

func (o Options) context() context.Context {
	if o.Context == nil {
		return context.Background()
	}
	return o.Context
}

// ratioGrace is how many decompressed bytes are taken whatever their ratio:
// small files of long runs compress very well.
const ratioGrace = 256 << 20

func (o Options) withDefaults() Options {
	if o.MaxFiles <= 0 {
		o.MaxFiles = 100_000
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = 64 << 30
	}
	if o.MaxRatio <= 0 {
		o.MaxRatio = 250
	}
	return o
}

// File is one trace file that Find found.
type File struct {
	// Name is the path to show: as the user typed it or below the folder he
	// typed; "archive.zip!member.json" inside an archive; "-" for standard
	// input; of a web address what package remote's Redact leaves.
	Name string

	// Explicit tells that the user named this very file. Other files were
	// found in a folder, glob or archive and may turn out to be no traces.
	Explicit bool

	// Size is the number of bytes as stored, compressed or not; -1 when it is
	// not known.
	Size int64

	// Modified is when the file changed, ns since 1970; that of a file in an
	// archive is the archive's. 0 when it is not known.
	Modified int64

	// Version is what the store of an object calls its content; "" for files.
	Version string

	limits Options
	open   func() (io.ReadCloser, error) // the bytes as stored
}

// Open returns the decompressed bytes of the file. Standard input can be
// opened once.
//
// A file that is cut off gives what can be decompressed, then an error that
// wraps io.ErrUnexpectedEOF. Reading beyond a limit gives ErrLimit.
func (f File) Open() (io.ReadCloser, error) {
	if f.open == nil {
		return nil, fmt.Errorf("%s: %w", f.Name, fs.ErrNotExist)
	}
	stored, err := f.open()
	if err != nil {
		return nil, fmt.Errorf("cannot open trace: %w", err)
	}
	r, err := decompress(f.Name, stored, f.limits)
	if err != nil {
		stored.Close()
		return nil, err
	}
	return r, nil
}
