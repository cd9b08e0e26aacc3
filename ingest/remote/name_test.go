package remote

import (
	"errors"
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	for given, want := range map[string]string{
		"rank0.json":    "rank0.json",
		"a?b=c@d/e.gz":  "a?b=c@d/e.gz", // a file
		"s3://b/k?x=@y": "s3://b/k?x=@y",
		"https://host/a/b.json?X-Amz-Signature=planted": "https://host/a/b.json",
		"https://user:planted@host:8443/a.json":         "https://host:8443/a.json",
		"HTTPS://user:planted@host/a.json#planted":      "https://host/a.json",
		"http://user:pla/nted@host/a":                   "http://host/a",
		"http://user:pla?nted@host/a?planted":           "http://host/a",
		"https://host?planted":                          "https://host",
		"https://host/a@b/c.json":                       "https://b/c.json", // may be a password
		"https://%zz:planted@host/%zz?planted":          "https://host/%zz",
	} {
		if got := Redact(given); got != want {
			t.Errorf("Redact(%s) = %s, want %s", given, got, want)
		}
	}
	got := strings.Join(RedactAll([]string{"analyze", "https://u:planted@h/a?planted", "--execution-traces=https://h/et?planted", "--rows=3"}), " ")
	if want := "analyze https://h/a --execution-traces=https://h/et --rows=3"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// FuzzRedact checks that no part that may be secret is left: what follows the
// first ? or #, what is before an @.
func FuzzRedact(f *testing.F) {
	f.Add("host/path", "query", "user:word")
	f.Add("host/p#q?r", "a@b/c?d", "user:w/?#ord")
	f.Fuzz(func(t *testing.T, path, query, user string) {
		if strings.ContainsAny(path, "?#@") {
			return
		}
		const planted = "PLANTED"
		for _, s := range []string{
			"https://" + path + "?" + planted,
			"https://" + path + "?x=" + planted + query,
			"https://" + path + "#" + planted,
			"https://" + strings.ReplaceAll(user, "@", "") + planted + "@" + path,
		} {
			if got := Redact(s); strings.Contains(got, planted) && !strings.Contains(path, planted) {
				t.Errorf("Redact(%q) = %q", s, got)
			}
		}
	})
}

func TestParse(t *testing.T) {
	for _, s := range []string{"s3:///key", "s3://", "gs://*/x", "s3://user@bucket/x", "https://", "https://\x7f/", "file.json"} {
		if n, err := parse(s); !errors.Is(err, ErrName) {
			t.Errorf("%q: %+v, %v", s, n, err)
		}
	}
	n, err := parse("s3://bucket/a%20b?c#d/é.json")
	if err != nil || n.bucket != "bucket" || n.key != "a%20b?c#d/é.json" {
		t.Errorf("%+v, %v: keys are taken as they are", n, err)
	}
	for s, listable := range map[string]bool{"s3://b": true, "gs://b/x": true, "AZBLOB://b": true, "https://h": false, "http://h": false} {
		if !Is(s) || Listable(s) != listable {
			t.Errorf("%s: remote %v, listable %v", s, Is(s), Listable(s))
		}
	}
	for _, s := range []string{"traces/", "C:/x", "ftp://x/y", "://", "s3:/b"} {
		if Is(s) {
			t.Errorf("%q is no remote name", s)
		}
	}
}
