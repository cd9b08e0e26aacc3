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
	found  map[string]found
}

// found is what there is of a kind of GPU.
type found struct {
	gpu  launch.GPU
	none error // why there is none
}

// kinds are the kinds of GPUs, those to take first first.
var kinds = []string{launch.OnCUDA, launch.OnHIP}

func findDevices(ctx context.Context, worker launch.Worker, wanted string) (*devices, error) {
	d := &devices{wanted: wanted, found: map[string]found{}}
	for _, kind := range kinds {
		f := found{none: fmt.Errorf("%w: this is --device %s", launch.ErrUnavailable, wanted)}
		if wanted == kind || wanted == Auto {
			f.gpu, f.none = worker.GPU(ctx, kind)
		}
		if wanted == kind && f.none != nil {
			return nil, fmt.Errorf("--device %s: %w", kind, f.none)
		}
		d.found[kind] = f
	}
	return d, nil
}

// usable says whether a backend can be planned for.
func (d *devices) usable(b launch.Backend) error {
	if b.Device == launch.OnHost || b.Device == d.wanted || d.wanted == Auto {
		return nil
	}
	if d.wanted == launch.OnHost {
		return fmt.Errorf("%w: %s works on GPUs, this is --device host", launch.ErrUnavailable, b.Name)
	}
	return fmt.Errorf("%w: %s works on --device %s, this is --device %s", launch.ErrUnavailable, b.Name, b.Device, d.wanted)
}

// choose decides where the plans run. traced says whether the trace is of GPUs.
func (d *devices) choose(traced bool, plans []*planpb.Plan) (planpb.Device, error) {
	ranks := len(plans[0].Workload.Programs)
	onGPU, kind := "", ""
	for _, p := range plans {
		for _, name := range mix.Backends(p) {
			switch device := launch.DeviceOf(name); {
			case device == launch.OnHost:
			case kind != "" && kind != device:
				return 0, fmt.Errorf("%w: %s and %s work on GPUs of different makers: measure them in two runs", launch.ErrUnavailable, onGPU, name)
			default:
				onGPU, kind = name, device
			}
		}
	}
	for _, k := range kinds {
		if kind == "" && (d.wanted == k || d.found[k].none == nil) {
			kind = k
		}
	}
	there := d.found[kind]
	switch {
	case kind == "" || d.wanted == launch.OnHost && onGPU == "":
		return planpb.Device_DEVICE_HOST, nil
	case d.wanted == kind:
		return launch.PlanDevice(kind), nil
	case d.wanted == Auto && there.none == nil && there.gpu.Count >= ranks && (traced || onGPU != ""):
		return launch.PlanDevice(kind), nil
	case onGPU != "" && there.none == nil:
		return 0, fmt.Errorf("%w: %s works on GPUs, and there are %d for %d ranks: --device %s lets ranks share them, --map %s=gloo replaces it",
			launch.ErrUnavailable, onGPU, there.gpu.Count, ranks, kind, mix.Library(onGPU))
	case onGPU != "":
		return 0, fmt.Errorf("%w: %s: %w", launch.ErrUnavailable, onGPU, there.none)
	}
	return planpb.Device_DEVICE_HOST, nil
}
