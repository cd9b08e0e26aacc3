package source

import (
	"errors"
	"io"
	"math/rand"
	"strings"
	"testing"
)

// fileOf returns a File with the given stored bytes.
func fileOf(stored string, opts Options) File {
	return File{Name: "f", limits: opts.withDefaults(), open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(stored)), nil
	}}
}

// noise returns n bytes of text that does not compress well.
func noise(n int) string {
	rnd := rand.New(rand.NewSource(1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(' ' + rnd.Intn(90))
	}
	return string(b)
}

func TestOpen(t *testing.T) {
	text := noise(300_000)
	tests := map[string]struct{ stored, want string }{
		"plain":           {text, text},
		"one byte":        {"x", "x"},
		"gzip":            {gz(text), text},
		"several members": {gz(text[:1000]) + gz("") + gz(text[1000:]), text},
		"zstd":            {zst(text), text},
		"several frames":  {zst(text[:1000]) + zst(text[1000:]), text},
		"empty gzip":      {gz(""), ""},
	}
	for name, tt := range tests {
		if got, err := read(fileOf(tt.stored, Options{})); got != tt.want || err != nil {
			t.Errorf("%s: %d bytes, want %d; %v", name, len(got), len(tt.want), err)
		}
	}
}

// TestCut is about workers that were killed while they wrote: what is there
// must come out.
func TestCut(t *testing.T) {
	text := noise(300_000)
	for name, stored := range map[string]string{"gzip": gz(text), "zstd": zst(text), "second member": gz(text[:100_000]) + gz(text[100_000:])} {
		for _, keep := range []int{len(stored) - 1, len(stored) - 9, len(stored) * 3 / 4} {
			got, err := read(fileOf(stored[:keep], Options{}))
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%s cut at %d: error %v", name, keep, err)
			}
			if !strings.HasPrefix(text, got) || len(got) < len(text)/2 && name != "zstd" {
				t.Errorf("%s cut at %d of %d: %d bytes of %d", name, keep, len(stored), len(got), len(text))
			}
		}
	}
	if _, err := read(fileOf("\x1f\x8b\x08", Options{})); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut in the header: %v", err)
	}
}

func TestBadChecksum(t *testing.T) {
	text := noise(1000)
	stored := []byte(gz(text))
	stored[len(stored)-5] ^= 1
	if got, err := read(fileOf(string(stored), Options{})); got != text || err == nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func TestUnsupported(t *testing.T) {
	for _, stored := range []string{"\xfd7zXZ\x00\x00", "\x04\x22\x4d\x18zzz"} {
		if _, err := read(fileOf(stored, Options{})); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%q: %v", stored, err)
		}
	}
}

func TestDecompressionLimits(t *testing.T) {
	text := noise(1000)
	for _, stored := range []string{text, gz(text), zst(text)} {
		if got, err := read(fileOf(stored, Options{MaxBytes: 1000})); got != text || err != nil {
			t.Errorf("exactly the limit: %d bytes, %v", len(got), err)
		}
		got, err := read(fileOf(stored, Options{MaxBytes: 999}))
		if !errors.Is(err, ErrLimit) {
			t.Errorf("beyond the limit: %d bytes, %v", len(got), err)
		}
	}
}

func TestRatioLimit(t *testing.T) {
	bomb := zst(strings.Repeat("0", ratioGrace+4<<20))
	r, err := fileOf(bomb, Options{}).Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	n, err := io.Copy(io.Discard, r)
	if !errors.Is(err, ErrLimit) || n < ratioGrace || n > ratioGrace+1<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestZeroFile(t *testing.T) {
	if _, err := (File{Name: "x"}).Open(); err == nil {
		t.Error("the zero File was opened")
	}
}
