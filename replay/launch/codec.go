package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// Codec is what can compress payloads, as this machine has it.
type Codec struct {
	Name      string `json:"name"`
	Available bool   `json:"available"`
	Version   string `json:"version,omitempty"`
	Reason    string `json:"reason,omitempty"` // why it can't run here
}

// libraryZFP is the one codec that needs a library.
const libraryZFP = "zfp"

// Codecs lists all codecs.
func (w Worker) Codecs(ctx context.Context) []Codec {
	list := []Codec{
		{Name: "bf16", Available: true, Version: "part of the worker"},
		{Name: "fp8", Available: true, Version: "part of the worker: e4m3, e5m2"},
	}
	z := Codec{Name: libraryZFP}
	version, err := w.probeZFP(ctx)
	if err != nil {
		z.Reason = err.Error()
	} else {
		z.Available, z.Version = true, version
	}
	return append(list, z)
}

// CheckCodec says whether a codec, as plans name it, can run here: ErrUnavailable with
// what is missing.
func (w Worker) CheckCodec(ctx context.Context, name string) error {
	if !strings.HasPrefix(name, libraryZFP) {
		return nil
	}
	if _, err := w.probeZFP(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return nil
}

// probeZFP asks the worker for the library's version.
func (w Worker) probeZFP(ctx context.Context) (string, error) {
	answer, err := w.ask(ctx, "--probe-codec", libraryZFP)
	if err != nil {
		return "", err
	}
	var said struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		return "", fmt.Errorf("the worker's answer %q: %w", firstLine(string(answer)), err)
	}
	return said.Version, nil
}
