package exports

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"mixdown/replay/mix"
	"mixdown/replay/shim"
)

// writeShim writes the Python module that routes a job's communication.
func writeShim(j *job) (*Output, error) {
	opts := j.shimOptions()
	return j.python(shim.FileName, shim.TorchAdvice(), func(w io.Writer) error { return shim.Write(w, *j.Mix, opts) })
}

// writeDeepSpeed writes what DeepSpeed needs to log its communication.
func writeDeepSpeed(j *job) (*Output, error) {
	advice, err := shim.DeepSpeedAdvice(*j.Mix, j.shimOptions())
	if err != nil {
		return nil, err
	}
	return j.python("comms_logger.json", advice, func(w io.Writer) error { return shim.WriteDeepSpeed(w) })
}

func (j *job) python(name string, advice shim.Advice, write func(io.Writer) error) (*Output, error) {
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return nil, err
	}
	j.out.Files, j.out.Apply, j.out.Proof = []File{{name, b.Bytes()}}, advice.Apply, advice.Proof
	return j.out, nil
}

// shimOptions leaves the settings of a library to its own file: a process group
// can't have them.
func (j *job) shimOptions() shim.Options {
	opts := shim.Options{Version: j.Version, Backends: map[string]string{}}
	for _, name := range (mix.Mix)(*j.Mix).Backends() {
		if library, settings, ok := strings.Cut(name, ":"); ok {
			opts.Backends[name] = library
			j.out.warn("%s: the settings %q apply to the whole job: give them to the library itself (export --to %s)", name, settings, tunerOf(library))
		}
	}
	return opts
}

// tunerOf names a format that gives a library its settings.
func tunerOf(library string) string {
	switch library {
	case "openmpi":
		return "openmpi-rules"
	case "mpich", "ucc":
		return library
	}
	return fmt.Sprintf("%s-tuner", library)
}
