package replay

import (
	"context"
	"fmt"

	"mixdown/replay/launch"
	"mixdown/replay/mix"
	"mixdown/replay/plan/planpb"
)

// Auto lets the trace and the machine decide on the device.
const Auto = "auto"

// devices is what decides on the device of a replay.
type devices struct {
	wanted string // of --device
	gpu    launch.GPU
	none   error // why there is no GPU
}

func findDevices(ctx context.Context, worker launch.Worker, wanted string) (*devices, error) {
	d := &devices{wanted: wanted}
	if wanted == launch.OnHost {
		d.none = fmt.Errorf("%w: this is --device host", launch.ErrUnavailable)
		return d, nil
	}
	d.gpu, d.none = worker.GPU(ctx)
	if wanted == launch.OnCUDA && d.none != nil {
		return nil, fmt.Errorf("--device cuda: %w", d.none)
	}
	return d, nil
}

// usable says whether a backend can be planned for.
func (d *devices) usable(b launch.Backend) error {
	if b.Device == launch.OnCUDA && d.wanted == launch.OnHost {
		return fmt.Errorf("%w: %s works on GPUs, this is --device host", launch.ErrUnavailable, b.Name)
	}
	return nil
}

// choose decides where the plans run. traced says whether the trace is of GPUs.
func (d *devices) choose(traced bool, plans []*planpb.Plan) (planpb.Device, error) {
	ranks := len(plans[0].Workload.Programs)
	onGPU := ""
	for _, p := range plans {
		for _, name := range mix.Backends(p) {
			if mix.Library(name) == "nccl" {
				onGPU = name
			}
		}
	}
	switch {
	case d.wanted == launch.OnCUDA:
		return planpb.Device_DEVICE_CUDA, nil
	case d.wanted == Auto && d.none == nil && d.gpu.Count >= ranks && (traced || onGPU != ""):
		return planpb.Device_DEVICE_CUDA, nil
	case onGPU != "" && d.none == nil:
		return 0, fmt.Errorf("%w: %s works on GPUs, and there are %d for %d ranks: --device cuda lets ranks share them, --map %s=gloo replaces it",
			launch.ErrUnavailable, onGPU, d.gpu.Count, ranks, mix.Library(onGPU))
	case onGPU != "":
		return 0, fmt.Errorf("%w: %s: %w", launch.ErrUnavailable, onGPU, d.none)
	}
	return planpb.Device_DEVICE_HOST, nil
}
