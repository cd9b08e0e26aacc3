package native_test

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
)

// Whatever is in the file, the worker ends by itself and in order.
func TestHostileExperiments(t *testing.T) {
	need(t, filepath.Dir(worker(t)), "gloo")
	b := newBuilder(1, 2, "gloo")
	for _, op := range collectives() {
		b.collective(op, f32, plus, 0, 0, 5, 0)
	}
	b.ring(0, f32, 3, 1)
	b.span(0, 1, 1000, 2)
	good := experiment(b.w)
	data, err := proto.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		bad := append([]byte(nil), data...)
		switch random.IntN(3) {
		case 0: // other values
			for range 1 + random.IntN(3) {
				bad[random.IntN(len(bad))] ^= byte(1 << random.IntN(8))
			}
		case 1: // extreme values
			bad[random.IntN(len(bad))] = []byte{0, 0x7f, 0x80, 0xff}[random.IntN(4)]
		case 2: // cut off
			bad = bad[:random.IntN(len(bad))]
		}
		j := start(t, good, launch{raw: bad})
		timer := time.AfterFunc(time.Second, func() { j.stop(t) })
		j.wait()
		timer.Stop()
		if code := j.codes[0]; code != 0 && code != 2 && code != 3 {
			t.Errorf("exit code %d for %x:\n%s", code, bad, j.out.String())
		}
		if s := j.slot(t, 0); j.codes[0] == 2 && strings.HasPrefix(s.message, "crashed") {
			t.Errorf("crash for %x", bad)
		}
	}
}
