package native_test

import (
	"path/filepath"
	"strings"
	"testing"

	"mixdown/replay/plan/planpb"
)

// The whole matrix on other transports, and with messages that the receiver fetches
// (rendezvous) or never does.
func TestUCXSettings(t *testing.T) {
	for _, x := range []struct {
		backend, note string
	}{
		{"ucx:tcp", "transports: self,tcp;"},
		{"ucx:posix/rndv=64", "transports: self,posix;"},
		{"ucx:sysv/cma/rndv=1000", "transports: self,sysv,cma;"},
		{"ucx:tcp/rndv=999999999", "rendezvous from 999999999 bytes on"},
	} {
		t.Run(x.backend, func(t *testing.T) {
			need(t, filepath.Dir(worker(t)), "ucx")
			w, _ := matrix(3, x.backend)
			e := experiment(w)
			e.Settings.Iterations, e.Settings.Warmup = 0, 0
			all := start(t, e, launch{}).done(t, e)
			infos := all[0][0].GetHeader().Backends
			if len(infos) != 1 || infos[0].Name != x.backend || !strings.Contains(strings.Join(infos[0].Notes, "\n"), x.note) {
				t.Errorf("the header says %v, want %q among the notes", infos, x.note)
			}
		})
	}
	for settings, want := range map[string]string{
		"tls":                   `"tls" is neither a transport`,
		"tcp/rndv=":             `"rndv=" is neither a transport`,
		"rndv=1/rndv=2":         "two sizes of rndv",
		"rndv=1000000000000000": "nor rndv=BYTES",
	} {
		t.Run(settings, func(t *testing.T) {
			need(t, filepath.Dir(worker(t)), "ucx")
			b := newBuilder(2, 1, "ucx:"+settings)
			b.collective(opAR, f32, plus, 0, 0, 1, 0)
			expectFailure(t, start(t, experiment(b.w), launch{}), want)
		})
	}
}

// Transports that reach nobody are a fault with a message, as any other.
func TestUCXUnreachable(t *testing.T) {
	need(t, filepath.Dir(worker(t)), "ucx")
	b := newBuilder(2, 1, "ucx")
	b.collective(opAR, f32, plus, 0, 0, 1, 0)
	expectFailure(t, start(t, experiment(b.w), launch{env: []string{"UCX_TLS=self"}}), "ucp_ep_create: Destination is unreachable")
}

// What a sender has handed to UCX arrives, though the sender calls it no more: it waits
// for an answer that comes on another library. The sockets hold less than two messages, so
// that UCX still has one when it says that it is sent.
func TestUCXSenderGoesOn(t *testing.T) {
	for _, backend := range []string{"ucx", "ucx:tcp"} {
		t.Run(backend, func(t *testing.T) {
			need(t, filepath.Dir(worker(t)), "ucx")
			need(t, filepath.Dir(worker(t)), "gloo")
			b := newBuilder(2, 1, backend)
			for k := range 6 {
				b.backend = backend
				b.span(1, 0, 3_000_000)
				for range 1 + k {
					b.sendRecv(0, 0, 1, i8, int64(1000*(3+k)), 0)
				}
				b.backend = "gloo"
				b.sendRecv(0, 1, 0, f32, 1, 0)
			}
			e := experiment(b.w)
			e.Settings.Iterations, e.Settings.Warmup = 1, 0
			start(t, e, launch{env: []string{"UCX_TCP_SNDBUF=4k", "UCX_TCP_RCVBUF=4k"}}).done(t, e)
		})
	}
}

// Many groups, each with tags of its own on every member.
func TestUCXManyGroups(t *testing.T) {
	need(t, filepath.Dir(worker(t)), "ucx")
	b := newBuilder(4, 2, "ucx")
	for k := range 60 {
		g := b.group([][]int{{0, 1, 2, 3}, {3, 1}, {1, 2}, {2, 0, 3}}[k%4]...)
		b.collective(planpb.Op_OP_ALL_GATHER, f32, plus, g, 0, int64(10*k), k%2)
		b.ring(g, i8, int64(100+k), 1-k%2)
	}
	e := experiment(b.w)
	start(t, e, launch{}).done(t, e)
}
