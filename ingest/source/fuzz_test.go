package source

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzFind checks what holds for every file, packed or not: no panic, an end, no
// more bytes or files than the limits allow, and no member named outside of its
// archive.
func FuzzFind(f *testing.F) {
	for _, stored := range []string{
		trace, gz(trace), gz(trace[:20]) + gz(trace[20:]), gz(trace)[:30], zst(trace), zst(trace) + zst(""),
		tarOf("rank0.json", trace, "../rank1.json", trace), gz(tarOf("a/rank0.json", gz(trace))), tarOf("a.tar", tarOf("b", trace))[:700],
		zipOf("rank0.json", trace, "/etc/rank1.json.gz", gz(trace)), zipOf("a.zip", zipOf("b.json", trace)), zipOf("a.json", strings.Repeat("0", 100_000)),
		gz(gz(trace)), zst(gz(trace)), gz(strings.Repeat(" ", 200_000)), "BZh9", "\xfd7zXZ\x00", "",
	} {
		f.Add([]byte(stored))
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		if len(stored) > 1<<16 {
			return
		}
		name := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(name, stored, 0o644); err != nil {
			t.Fatal(err)
		}
		opts := Options{MaxFiles: 5, MaxBytes: 100_000}
		found, err := Find([]string{name}, opts)
		if err == nil && (len(found) == 0 || len(found) > opts.MaxFiles) {
			t.Fatalf("%d files and no error", len(found))
		}
		for _, file := range found {
			if member, inside := strings.CutPrefix(file.Name, name+"!"); file.Name != name && (!inside || !filepath.IsLocal(member)) {
				t.Errorf("file named %q", file.Name)
			}
			r, err := file.Open()
			if err != nil {
				continue
			}
			n, err := io.Copy(io.Discard, r)
			if n > opts.MaxBytes {
				t.Errorf("%s: %d bytes, the limit is %d (%v)", file.Name, n, opts.MaxBytes, err)
			}
			r.Close() // what is damaged may say so twice
		}
	})
}
