package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"mixdown/replay/plan/planpb"
)

// GPU is what the worker finds of one kind.
type GPU struct {
	Kind     string `json:"-"` // OnCUDA or OnHIP
	Count    int    `json:"count"`
	Name     string `json:"name"`   // of the first
	Driver   string `json:"driver"` // version of its interface
	Emulated bool   `json:"emulated,omitempty"`
}

// ErrEmulated: a GPU of the tests ran what a real one was meant to run.
var ErrEmulated = fmt.Errorf("%w: the GPU is emulated: its times mean nothing", ErrUnavailable)

// emulationAllowed is the variable that lets tests of mixdown itself see results
// of an emulated GPU.
const emulationAllowed = "MIXDOWN_TEST_EMULATED"

// GPU asks for the GPUs of a kind, OnCUDA or OnHIP, that this machine has;
// ErrUnavailable says why there are none.
func (w Worker) GPU(ctx context.Context, kind string) (GPU, error) {
	g := GPU{Kind: kind}
	answer, err := w.ask(ctx, "--probe-device", kind)
	if err != nil {
		return g, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err := json.Unmarshal(answer, &g); err != nil {
		return g, fmt.Errorf("%w: the worker's answer %q: %w", ErrUnavailable, firstLine(string(answer)), err)
	}
	if err := refuseEmulated(g.Emulated); err != nil {
		return g, err
	}
	return g, nil
}

// AnyGPU asks for GPUs of each kind; the first that there are.
func (w Worker) AnyGPU(ctx context.Context) (GPU, error) {
	g, noCUDA := w.GPU(ctx, OnCUDA)
	if noCUDA == nil {
		return g, nil
	}
	if hip, err := w.GPU(ctx, OnHIP); err == nil {
		return hip, nil
	}
	return g, noCUDA
}

// PlanDevice is what an experiment's settings call a place of buffers.
func PlanDevice(kind string) planpb.Device {
	switch kind {
	case OnCUDA:
		return planpb.Device_DEVICE_CUDA
	case OnHIP:
		return planpb.Device_DEVICE_HIP
	}
	return planpb.Device_DEVICE_HOST
}

func refuseEmulated(emulated bool) error {
	if emulated && os.Getenv(emulationAllowed) == "" {
		return ErrEmulated
	}
	return nil
}
