package shim

import (
	"encoding/json"
	"fmt"
	"io"

	"mixdown/replay/mix"
)

// commsLogger is the block of a DeepSpeed configuration. All operations are
// logged: prof_ops doesn't match calls that go by a default name.
type commsLogger struct {
	Enabled bool     `json:"enabled"`
	Verbose bool     `json:"verbose"`
	ProfAll bool     `json:"prof_all"`
	Debug   bool     `json:"debug"`
	ProfOps []string `json:"prof_ops"`
}

// WriteDeepSpeed writes the block of DeepSpeed's configuration that turns its
// communication logger on, to be merged into the job's own.
func WriteDeepSpeed(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(map[string]commsLogger{"comms_logger": {Enabled: true, ProfAll: true, ProfOps: []string{}}})
}

// Advice is how to apply something, and how to see that it took effect.
type Advice struct {
	Apply, Proof []string // FILE stands for what was written
}

// TorchAdvice is that of the module.
func TorchAdvice() Advice {
	return Advice{
		Apply: []string{
			"save it as " + FileName + " where the training script finds it, and begin the script with: import mixdown_shim; mixdown_shim.install()",
			"with DistributedDataParallel also: model.register_comm_hook(None, mixdown_shim.ddp_comm_hook)",
			"MIXDOWN_SHIM=off switches it off, to compare",
		},
		Proof: []string{
			"MIXDOWN_SHIM_COUNTS=1 makes every rank print at its end what went where",
			"a trace of the job has groups \"mixdown:BACKEND:GROUP\" with the operations that were routed",
		},
	}
}

// DeepSpeedAdvice is that of the logger's block, and how DeepSpeed is given the
// backends of a mix.
func DeepSpeedAdvice(m mix.Mix, opts Options) (Advice, error) {
	rules, err := rulesOf(m, opts)
	if err != nil {
		return Advice{}, err
	}
	a := Advice{
		Apply: []string{"merge FILE into the DeepSpeed configuration: the logger makes operations block, so take it out again for other measurements"},
		Proof: []string{"deepspeed.comm.log_summary() prints a table; json.dump(deepspeed.comm.log_summary(return_dict=True), file) leaves one that mixdown analyze reads without loss"},
	}
	if r := rules[0]; r.Op == "" && r.Group == "" && !r.sized() {
		a.Apply = append(a.Apply, fmt.Sprintf("one backend for everything: deepspeed.init_distributed(dist_backend=%s), nothing else is needed", quote(r.backend)))
		return a, nil
	}
	a.Apply = append(a.Apply,
		"DeepSpeed has one backend for everything and no setting for more, but it calls torch.distributed: write the module with --to pytorch-shim, and put import mixdown_shim; mixdown_shim.install() before deepspeed.init_distributed() or deepspeed.initialize()",
		"the 1-bit optimizers have a communication of their own: comm_backend_name in their parameters")
	return a, nil
}
