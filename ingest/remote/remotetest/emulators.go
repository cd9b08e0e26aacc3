package remotetest

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// StartGCS starts an emulator of Google Cloud Storage and returns its address, or
// skips the test. It checks no credentials.
func StartGCS(t testing.TB) string {
	t.Helper()
	program, err := build("stores/gcs", "github.com/fsouza/fake-gcs-server")
	if err != nil {
		t.Skipf("no emulator of Google Cloud Storage: %v", err)
	}
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	host, port := splitAddress(address)
	runServer(t, "http://"+address+"/storage/v1/b", program, "-backend", "memory", "-scheme", "http", "-host", host, "-port", port,
		"-public-host", address, "-external-url", "http://"+address, "-data", filepath.Join(t.TempDir(), "none"))
	return "http://" + address
}

// StartAzure starts Azurite, Microsoft's emulator of Azure's storage, and returns
// its address, or skips the test: it is a package of npm that mixdown does not
// install.
func StartAzure(t testing.TB) string {
	t.Helper()
	program := os.Getenv("AZURITE")
	if program == "" {
		var err error
		if program, err = exec.LookPath("azurite-blob"); err != nil {
			t.Skip("no Azurite: npm install -g azurite, or AZURITE=PATH/azurite-blob")
		}
	}
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	host, port := splitAddress(address)
	runServer(t, "http://"+address+"/", program, "--blobHost", host, "--blobPort", port, "--location", t.TempDir(), "--silent", "--skipApiVersionCheck")
	return "http://" + address
}

// AzureKey is the key of Azurite's account, the same everywhere
// (https://learn.microsoft.com/azure/storage/common/storage-use-azurite).
const AzureKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

// AzureConnection is how programs find the account at an address with a key.
func AzureConnection(address, key string) string {
	return "DefaultEndpointsProtocol=http;AccountName=devstoreaccount1;AccountKey=" + key + ";BlobEndpoint=" + address + "/devstoreaccount1;"
}

// runServer starts a server that ends with the test, and waits until something
// answers at the address.
func runServer(t testing.TB, address, program string, args ...string) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	for range 600 {
		if resp, err := http.Get(address); err == nil {
			resp.Body.Close()
			return
		}
		select {
		case <-ended:
			t.Fatalf("%s ended: %s", filepath.Base(program), log.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Fatalf("%s did not start to listen", filepath.Base(program))
}
