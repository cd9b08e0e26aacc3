package native_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestYields: ranks that poll give up their core at once where more of them are on this
// host than it has cores, and not where the others of the job are on other hosts.
func TestYields(t *testing.T) {
	if os.Getenv("MIXDOWN_YIELD") != "" {
		t.Skip("MIXDOWN_YIELD decides")
	}
	// As the modules count them, not those that this process may use.
	out, err := exec.Command("getconf", "_NPROCESSORS_ONLN").Output()
	if err != nil {
		t.Fatal(err)
	}
	cores, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	size := cores + 1
	for _, backend := range []string{"ucx", "mpich"} {
		for _, here := range []int{0, 1, size} { // 0: nothing is said, so all
			t.Run(fmt.Sprintf("%s/%d", backend, here), func(t *testing.T) {
				folder := filepath.Dir(worker(t))
				need(t, folder, backend)
				watch := filepath.Join(folder, "testing", "libwatch-"+backend+".so")
				if _, err := os.Stat(watch); err != nil {
					t.Skipf("not built: %v", err)
				}
				if size > 16 {
					t.Skipf("%d cores: too many ranks", cores)
				}
				b := newBuilder(size, 1, backend)
				b.span(0, 0, 20_000_000) // the others wait
				b.collective(opAR, f32, plus, 0, 0, 100, 0)
				e := experiment(b.w)
				e.Settings.Iterations, e.Settings.Warmup = 1, 0
				yielded := filepath.Join(t.TempDir(), "yielded")
				l := launch{backend: backend, unset: []string{"MPI_LOCALNRANKS"}, env: []string{"LD_PRELOAD=" + watch, "MIXDOWN_YIELDED=" + yielded}}
				if here > 0 {
					l.args = []string{"--local-size", strconv.Itoa(here)}
				}
				start(t, e, l).done(t, e)
				_, err := os.Stat(yielded)
				if got, want := err == nil, here != 1; got != want {
					t.Errorf("%d ranks on %d cores, told that %d are here: cores given up: %v, want %v", size, cores, here, got, want)
				}
			})
		}
	}
}
