package mix

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrCapabilities: a file of capabilities could not be read.
var ErrCapabilities = errors.New("invalid capabilities")

// Capability is what the check knows about one backend. The zero value is a
// library in host memory that can do everything from any thread.
type Capability struct {
	Name string `json:"name"`
	// Device is where its buffers are and what carries its operations out:
	// "host" or "gpu". "" means host.
	Device string `json:"device,omitempty"`
	// StreamOrdered: its operations are queued on GPU streams, as NCCL's are.
	// Without it the host must see that what produces a buffer has ended.
	StreamOrdered bool `json:"stream_ordered,omitempty"`
	// Untagged: between two ranks messages pair up by their order, not by a tag.
	Untagged bool `json:"untagged,omitempty"`
	// Family: of several backends of one family a process can hold only one.
	Family string `json:"family,omitempty"`
	// Threads is how it may be called: "multiple" (also ""), "serialized" by one
	// thread at a time, "single" by one thread only.
	Threads string `json:"threads,omitempty"`
	// Ops, DTypes and ReduceOps are what it can do; empty means all.
	Ops       []string `json:"ops,omitempty"`
	DTypes    []string `json:"dtypes,omitempty"`
	ReduceOps []string `json:"reduce_ops,omitempty"`
	// NoAverage lists the element types that it can't average.
	NoAverage []string `json:"no_average,omitempty"`
	// MaxCount is the most elements of one operation, 0 for no limit.
	MaxCount int64 `json:"max_count,omitempty"`
	// Channels is the number of SMs that one of its kernels holds, 0 if unknown.
	Channels int `json:"channels,omitempty"`
	// Concurrent: its kernels for several groups can wait on one GPU side by side,
	// however many there are, so that no order between them is needed.
	Concurrent bool `json:"concurrent,omitempty"`
	// Allocates: it may allocate, register or connect while it runs.
	Allocates bool `json:"allocates,omitempty"`
	// BlocksHost: the host's thread can't go on while one of its operations runs.
	BlocksHost bool `json:"blocks_host,omitempty"`
	// SMFree: its operations run beside kernels without taking SMs, but slower.
	SMFree bool `json:"sm_free,omitempty"`
	// Measured are the ranges in which its speed is known; empty means that the
	// choice of this backend does not rest on measurements.
	Measured []Range `json:"measured,omitempty"`
}

// Range is a range of sizes and group sizes, ends included.
type Range struct {
	Op       string `json:"op,omitempty"` // "" means any
	MinBytes int64  `json:"min_bytes"`
	MaxBytes int64  `json:"max_bytes"`
	MinRanks int    `json:"min_ranks"`
	MaxRanks int    `json:"max_ranks"`
}

// Capabilities is what is known about the backends and the device.
type Capabilities struct {
	SchemaVersion int          `json:"schema_version"`
	SMs           int          `json:"sms,omitempty"` // of one GPU, 0 if unknown
	Backends      []Capability `json:"backends"`
}

// gpu says whether the backend's operations are kernels or copies on the GPU.
func (c *Capability) gpu() bool { return c.Device == "gpu" }

// Known is what is known of the backends that mixdown has a name for, in the
// worker's way of calling them.
func Known() Capabilities {
	ncclTypes := []string{"float32", "float64", "float16", "bfloat16", "int8", "uint8", "int32", "int64", "uint32", "uint64",
		"bool", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"}
	integers := []string{"int8", "uint8", "int32", "int64", "uint32", "uint64", "bool"}
	reductions := []string{"sum", "avg", "min", "max", "prod", "premul_sum"}
	nccl := Capability{Device: "gpu", StreamOrdered: true, Untagged: true, DTypes: ncclTypes, ReduceOps: reductions, NoAverage: integers}
	rccl := nccl
	nccl.Name, rccl.Name = "nccl", "rccl"
	return Capabilities{SchemaVersion: 1, Backends: []Capability{
		{Name: "gloo"},
		{Name: "openmpi", Family: "mpi"},
		{Name: "mpich", Family: "mpi"},
		{Name: "ucx"},
		nccl, rccl,
	}}
}

// Find returns what is known of a backend, false when nothing is. One with
// settings is as its library, with the channels that they say, unless it has an
// entry of its own.
func (c *Capabilities) Find(name string) (Capability, bool) {
	for _, of := range []string{name, Library(name)} {
		for _, b := range c.Backends {
			if b.Name != of {
				continue
			}
			if n := channelsOf(name); n > 0 && of != name {
				b.Channels = n
			}
			return b, true
		}
	}
	return Capability{Name: name}, false
}

// maxCapabilities bounds the file, in bytes.
const maxCapabilities = 1 << 20

// ParseCapabilities reads JSON and lays it over Known: a backend that the file
// names is as the file says, the others stay.
func ParseCapabilities(r io.Reader) (Capabilities, error) {
	known := Known()
	data, err := io.ReadAll(io.LimitReader(r, maxCapabilities+1))
	if err != nil {
		return known, fmt.Errorf("read capabilities: %w", err)
	}
	if len(data) > maxCapabilities {
		return known, fmt.Errorf("%w: more than %d bytes", ErrCapabilities, maxCapabilities)
	}
	var file Capabilities
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&file); err != nil {
		return known, fmt.Errorf("%w: %v", ErrCapabilities, err)
	}
	if dec.More() {
		return known, fmt.Errorf("%w: something follows the JSON value", ErrCapabilities)
	}
	if file.SchemaVersion != 1 {
		return known, fmt.Errorf("%w: schema_version is %d, expected 1", ErrCapabilities, file.SchemaVersion)
	}
	if file.SMs < 0 {
		return known, fmt.Errorf("%w: sms is %d", ErrCapabilities, file.SMs)
	}
	known.SMs = file.SMs
	for _, b := range file.Backends {
		if err := b.check(); err != nil {
			return known, fmt.Errorf("%w: backend %q: %w", ErrCapabilities, b.Name, err)
		}
		known.Backends = slices.DeleteFunc(known.Backends, func(k Capability) bool { return k.Name == b.Name })
		known.Backends = append(known.Backends, b)
	}
	return known, nil
}

func (c *Capability) check() error {
	switch {
	case c.Name == "":
		return errors.New("it has no name")
	case !slices.Contains([]string{"", "host", "gpu"}, c.Device):
		return fmt.Errorf("device %q: known are host, gpu", c.Device)
	case !slices.Contains([]string{"", "multiple", "serialized", "single"}, c.Threads):
		return fmt.Errorf("threads %q: known are multiple, serialized, single", c.Threads)
	case c.StreamOrdered && c.Device != "gpu":
		return errors.New("stream_ordered needs device gpu")
	case c.MaxCount < 0 || c.Channels < 0:
		return errors.New("max_count and channels can't be negative")
	}
	return nil
}
