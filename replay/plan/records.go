package plan

import (
	"bufio"
	"errors"
	"io"
	"iter"
	"os"

	"google.golang.org/protobuf/encoding/protodelim"

	"mixdown/replay/plan/planpb"
)

// maxRecord bounds a record, in bytes.
const maxRecord = 1 << 30

// Records are those of a worker's result, in order. An error ends them; it is
// io.ErrUnexpectedEOF where the result ends within a record, as that of a killed worker
// may.
func Records(r io.Reader) iter.Seq2[*planpb.Record, error] {
	return func(yield func(*planpb.Record, error) bool) {
		for in := bufio.NewReader(r); ; {
			rec := &planpb.Record{}
			err := protodelim.UnmarshalOptions{MaxSize: maxRecord}.UnmarshalFrom(in, rec)
			switch {
			case errors.Is(err, io.ErrUnexpectedEOF):
				yield(nil, io.ErrUnexpectedEOF)
				return
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(nil, err)
				return
			}
			if !yield(rec, nil) {
				return
			}
		}
	}
}

// ReadRecords are those of a worker's result file. The error is fs.ErrNotExist where
// there is none.
func ReadRecords(path string) iter.Seq2[*planpb.Record, error] {
	return func(yield func(*planpb.Record, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		for rec, err := range Records(f) {
			if !yield(rec, err) {
				return
			}
		}
	}
}
