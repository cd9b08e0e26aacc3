package remote_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"

	"mixdown/ingest/remote"
	"mixdown/ingest/remote/remotetest"
)

// conform checks what every store must do, below a prefix such as gs://bucket.
// use makes the process find it at an address: its own or that of a proxy.
func conform(t *testing.T, prefix string, use func(address string), address string) {
	t.Helper()
	use(address)
	c := remote.New(t.Context(), quick)
	data := noise(9, 700_000)
	odd := prefix + "/run 7/a+b%20c/rank[3]é.json"
	for _, name := range []string{prefix + "/run7/rank0.json", odd} {
		write(t, c, name, data)
		got, err := c.ReadAll(name, 1<<20)
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("%s: %d bytes, %v", name, len(got), err)
		}
		o, err := c.Stat(name)
		if err != nil || o.Name != name || o.Size != int64(len(data)) || o.Version == "" || o.Modified.IsZero() {
			t.Errorf("%+v, %v", o, err)
		}
	}
	if got := list(t, c, prefix+"/run "); len(got) != 1 || got[0] != odd {
		t.Errorf("listed %q", got)
	}
	for _, name := range []string{prefix + "/none", prefix + "x/none"} {
		if _, err := c.Open(name); !errors.Is(err, remote.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.List(prefix+"x/", func(remote.Object) bool { return true }); !errors.Is(err, remote.ErrNotFound) || !strings.Contains(err.Error(), "no such bucket") {
		t.Errorf("list of no bucket: %v", err)
	}
	if err := errors.Join(c.Remove(odd), c.Remove(odd)); err != nil {
		t.Error(err)
	}

	// Every second connection dropped or refused.
	const name = "/run7/rank0.json"
	n := 0
	p := remotetest.NewProxy(t, address, func(*http.Request) remotetest.Fault {
		switch n++; {
		case n%5 == 1:
			return remotetest.Fault{Status: 503}
		case n < 20:
			return remotetest.Fault{DropAfter: 77_777}
		}
		return remotetest.Fault{}
	})
	use(p.Address)
	got, err := remote.New(t.Context(), quick).ReadAll(prefix+name, 1<<20)
	if err != nil || !bytes.Equal(got, data) || n < 10 {
		t.Errorf("%d bytes after %d requests, %v", len(got), n, err)
	}
	// Replaced after the first connection dropped.
	n = 0
	p.Decide(func(r *http.Request) remotetest.Fault {
		if n++; n == 1 {
			return remotetest.Fault{DropAfter: 300_000}
		}
		return remotetest.Fault{Hook: func() {
			if n == 2 {
				write(t, c, prefix+name, noise(10, 700_000))
			}
		}}
	})
	got, err = remote.New(t.Context(), quick).ReadAll(prefix+name, 1<<20)
	if !errors.Is(err, remote.ErrChanged) || !bytes.Equal(got, data[:len(got)]) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	// Down for good.
	p.Decide(func(*http.Request) remotetest.Fault { return remotetest.Fault{Status: 503} })
	if _, err = remote.New(t.Context(), quick).Open(prefix + name); !errors.Is(err, remote.ErrUnavailable) {
		t.Error(err)
	}
}

func TestGCS(t *testing.T) {
	address := remotetest.StartGCS(t)
	resp, err := http.Post(address+"/storage/v1/b?project=test", "application/json", strings.NewReader(`{"name": "bucket"}`))
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	conform(t, "gs://bucket", func(address string) { t.Setenv("STORAGE_EMULATOR_HOST", address) }, address)
}

// The emulator asks for no credentials: that there are none, or that a file of
// them is none, shows before a request is made.
func TestGCSCredentials(t *testing.T) {
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	for name, content := range map[string]string{"missing": "", "no JSON": "planted", "other JSON": `{"type": "planted", "private_key": "planted"}`} {
		file := t.TempDir() + "/key.json"
		if content != "" {
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
		_, err := remote.New(t.Context(), quick).Open("gs://bucket/x")
		if !errors.Is(err, remote.ErrCredentials) || strings.Contains(err.Error(), "planted") || !strings.Contains(err.Error(), "gcloud auth") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAzure(t *testing.T) {
	address := remotetest.StartAzure(t)
	client, err := azblob.NewClientFromConnectionString(remotetest.AzureConnection(address, remotetest.AzureKey), nil)
	if err == nil {
		_, err = client.CreateContainer(context.Background(), "bucket", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	use := func(address string) {
		t.Setenv("AZURE_STORAGE_CONNECTION_STRING", remotetest.AzureConnection(address, remotetest.AzureKey))
	}
	conform(t, "azblob://bucket", use, address)

	wrong := "cGxhbnRlZC1wbGFudGVkLXBsYW50ZWQ=" // base64
	t.Setenv("AZURE_STORAGE_CONNECTION_STRING", remotetest.AzureConnection(address, wrong))
	_, err = remote.New(t.Context(), quick).Open("azblob://bucket/run7/rank0.json")
	if !(errors.Is(err, remote.ErrCredentials) || errors.Is(err, remote.ErrDenied)) || strings.Contains(err.Error(), wrong) {
		t.Errorf("%v", err)
	}
}

func TestAzureCredentials(t *testing.T) {
	for name, vars := range map[string]string{
		"none":            "",
		"no key":          "AZURE_STORAGE_ACCOUNT=account AZURE_STORAGE_KEY=planted!",
		"half a string":   "AZURE_STORAGE_CONNECTION_STRING=AccountKey=planted",
		"another's words": "AZURE_STORAGE_CONNECTION_STRING=planted",
	} {
		for _, v := range []string{"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_CONNECTION_STRING"} {
			t.Setenv(v, "")
		}
		for _, v := range strings.Fields(vars) {
			key, value, _ := strings.Cut(v, "=")
			t.Setenv(key, value)
		}
		_, err := remote.New(t.Context(), quick).Open("azblob://bucket/x")
		if !errors.Is(err, remote.ErrCredentials) || strings.Contains(err.Error(), "planted") || !strings.Contains(err.Error(), "AZURE_STORAGE") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
