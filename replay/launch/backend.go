package launch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mixdown/replay/mix"
)

var (
	// ErrUnknownBackend: no backend of that name is known.
	ErrUnknownBackend = errors.New("unknown backend")
	// ErrUnavailable: the backend is known, but can't run here.
	ErrUnavailable = errors.New("backend not available")
)

// Backend is a communication library as this machine has it.
type Backend struct {
	Name      string   `json:"name"`
	Available bool     `json:"available"`
	Version   string   `json:"version,omitempty"`
	Launcher  string   `json:"launcher,omitempty"` // "direct" or the mpirun it needs
	Device    string   `json:"device,omitempty"`   // where its buffers are: "host", "cuda" or "hip"
	Notes     []string `json:"notes,omitempty"`
	Reason    string   `json:"reason,omitempty"` // why it can't run here
	// Operations is how it does each operation, as its module says.
	Operations []Operation `json:"operations,omitempty"`
	// Switches are what can be asked of it by the environment.
	Switches []Switch `json:"switches,omitempty"`
}

// Switch is a variable of the environment that, set to 1, changes how a backend does
// operations.
type Switch struct {
	Name       string   `json:"name"`
	Operations []string `json:"operations"` // that it changes
	Except     []string `json:"except"`     // element types of which it changes none
}

// Operation is how a backend does one operation.
type Operation struct {
	Op         string `json:"op"`
	Native     bool   `json:"native"`                // a call of the library
	ComposedOf string `json:"composed_of,omitempty"` // else what its module makes it of
}

// library is a backend that a mix may name.
type library struct {
	name, launcher, device string
	devel                  string // the packages that its module is built with
	runtime                string // the package that it runs with
	needs                  string // what it needs that no package of the distribution has
	absent                 string // why there is no module for it
}

// known are those that mixdown knows of. Packages are Debian's and Ubuntu's.
var known = []library{
	{name: "gloo", launcher: direct, device: OnHost, devel: "libgloo-dev", runtime: "libgloo0"},
	{name: "openmpi", launcher: openMPI, device: OnHost, devel: "openmpi-bin and libopenmpi-dev", runtime: "openmpi-bin"},
	{name: "mpich", launcher: mpich, device: OnHost, devel: "mpich and libmpich-dev", runtime: "mpich"},
	{name: "ucx", launcher: direct, device: OnHost, devel: "libucx-dev", runtime: "libucx0"},
	{name: "nccl", launcher: direct, device: OnCUDA, needs: "an NVIDIA GPU, its driver and NCCL (libnccl.so.2)"},
	{name: "rccl", launcher: direct, device: OnHIP, needs: "an AMD GPU, ROCm 5.4 or later (libamdhip64.so, libhiprtc.so) and RCCL (librccl.so.1)"},
	{name: "ucc", absent: "this version of mixdown has no module for it; ucx has the messages that it is built on"},
}

// find is the library of a backend, false when it is not known.
func find(backend string) (library, bool) {
	name := mix.Library(backend)
	i := slices.IndexFunc(known, func(l library) bool { return l.name == name })
	if i < 0 {
		return library{launcher: direct, device: OnHost}, false
	}
	return known[i], true
}

// DeviceOf is where the buffers of a backend are: OnHost, OnCUDA or OnHIP.
func DeviceOf(backend string) string {
	l, _ := find(backend)
	return l.device
}

// The launchers.
const (
	direct  = "direct"
	openMPI = "openmpi"
	mpich   = "mpich"
)

// Where buffers can be.
const (
	OnHost = "host"
	OnCUDA = "cuda"
	OnHIP  = "hip"
)

// KnownBackends lists the names that mixdown knows.
func KnownBackends() []string {
	var names []string
	for _, k := range known {
		names = append(names, k.name)
	}
	return names
}

// Worker is the worker program of this installation.
type Worker struct {
	Path string // of mixdown-worker; its modules lie beside it
	// Env are settings, as NAME=VALUE, that workers on other hosts are started with. On
	// this host a worker has the environment of this process: Path may be a script that
	// sets more.
	Env []string
}

// FindWorker looks for the worker: the environment's MIXDOWN_WORKER, else
// beside this program, else on PATH.
func FindWorker() (Worker, error) {
	if path := os.Getenv("MIXDOWN_WORKER"); path != "" {
		return Worker{Path: path}, nil
	}
	if self, err := os.Executable(); err == nil {
		if self, err = filepath.EvalSymlinks(self); err == nil {
			path := filepath.Join(filepath.Dir(self), "mixdown-worker")
			if _, err := os.Stat(path); err == nil {
				return Worker{Path: path}, nil
			}
		}
	}
	path, err := exec.LookPath("mixdown-worker")
	if err != nil {
		return Worker{}, fmt.Errorf("%w: mixdown-worker is neither beside mixdown nor on PATH: unpack the whole package or run make build, or set MIXDOWN_WORKER", ErrUnavailable)
	}
	return Worker{Path: path}, nil
}

// module is the file of a backend's module.
func (w Worker) module(name string) string {
	return filepath.Join(filepath.Dir(w.Path), "libmixdown_"+name+".so")
}

// Check says whether a backend can run here: ErrUnknownBackend for a name that
// is neither known nor has a module, ErrUnavailable with the reason otherwise.
func (w Worker) Check(ctx context.Context, name string) (Backend, error) {
	l, isKnown := find(name)
	b := Backend{Name: name, Launcher: l.launcher, Device: l.device}
	module := mix.Library(name)
	if _, err := os.Stat(w.module(module)); err != nil || strings.ContainsAny(module, "/\\") {
		if !isKnown {
			return b, fmt.Errorf("%w %q: known are %s", ErrUnknownBackend, name, strings.Join(KnownBackends(), ", "))
		}
		b.Reason = l.absent
		if l.absent == "" {
			b.Reason = "its module is not built: " + l.toBuild()
		}
		return b, fmt.Errorf("%w: %s: %s", ErrUnavailable, name, b.Reason)
	}
	if b.Launcher != direct {
		if _, err := exec.LookPath(launchers[b.Launcher].program); err != nil {
			b.Reason = fmt.Sprintf("%s is not on PATH: %s", launchers[b.Launcher].program, toInstall(l.runtime))
			return b, fmt.Errorf("%w: %s: %s", ErrUnavailable, name, b.Reason)
		}
	}
	if err := w.probe(ctx, &b); err != nil {
		b.Reason = l.explain(err.Error())
		return b, fmt.Errorf("%w: %s: %s", ErrUnavailable, name, b.Reason)
	}
	b.Available = true
	return b, nil
}

// probeTimeout bounds how long a library may take to say its version.
const probeTimeout = 20 * time.Second

// probe loads the module in the worker and asks for the library's version and
// operations.
func (w Worker) probe(ctx context.Context, b *Backend) error {
	answer, err := w.ask(ctx, "--probe", b.Name)
	if err != nil {
		return err
	}
	var said struct {
		Version    string      `json:"version"`
		Notes      []string    `json:"notes"`
		Operations []Operation `json:"operations"`
		Switches   []Switch    `json:"switches"`
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		return fmt.Errorf("its probe answered %q: %w", firstLine(string(answer)), err)
	}
	b.Version, b.Notes, b.Operations, b.Switches = said.Version, said.Notes, said.Operations, said.Switches
	return nil
}

// ask starts the worker to have something described, and returns what it prints; its
// error is what the worker said instead, on one line.
func (w Worker) ask(ctx context.Context, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.Path, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(strings.TrimPrefix(stderr.String(), "mixdown-worker: "))
		if text == "" {
			text = err.Error()
		}
		return nil, errors.New(firstLine(text))
	}
	return stdout.Bytes(), nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// List checks all known backends and those that other modules beside the
// worker add.
func (w Worker) List(ctx context.Context) []Backend {
	names := KnownBackends()
	modules, _ := filepath.Glob(w.module("*"))
	for _, m := range modules {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(m), "libmixdown_"), ".so")
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	var list []Backend
	for _, name := range names {
		b, _ := w.Check(ctx, name)
		list = append(list, b)
	}
	return list
}

// LauncherFor returns the launcher that a set of backends needs. Two MPI
// libraries can't live in one process: that is an error, and such variants need
// separate runs.
func LauncherFor(backends []string) (string, error) {
	launcher := direct
	for _, name := range backends {
		for _, k := range known {
			if k.name != mix.Library(name) || k.launcher == direct || k.launcher == "" {
				continue
			}
			if launcher != direct && launcher != k.launcher {
				return "", fmt.Errorf("%w: %s and %s can't be mixed: a process can load one MPI library only", ErrUnavailable, launcher, k.launcher)
			}
			launcher = k.launcher
		}
	}
	return launcher, nil
}
