package input

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"mixdown/ingest/trace"
)

// Checksums returns the SHA-256 of the trace file of every rank, in hex, by rank.
// Ranks whose trace is not a file of its own (a pipe, a member of an archive) or
// was read earlier, into a dataset, have none.
func (o *Options) Checksums(ctx context.Context, run *trace.Run) (map[int]string, error) {
	sums := map[int]string{}
	if dir, err := o.Dataset(ctx); err != nil || dir != "" {
		return sums, err
	}
	for _, rank := range run.Ranks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		sum, err := checksum(rank.Source)
		if err != nil {
			return nil, fmt.Errorf("checksum of rank %d: %w", rank.Rank, err)
		}
		if sum != "" {
			sums[rank.Rank] = sum
		}
	}
	return sums, nil
}

// checksum returns "" for what is not a regular file.
func checksum(name string) (string, error) {
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
		return "", nil // the name of no file: nothing to sum
	}
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
