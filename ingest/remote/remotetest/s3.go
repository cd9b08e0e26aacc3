package remotetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// Account is a user of the server.
type Account struct{ Access, Secret string }

// S3 is a server that runs until the test ends.
type S3 struct {
	Address string // "http://127.0.0.1:PORT"
	Root    Account
	program string
	files   string
}

// StartS3 starts a server without buckets, or skips the test.
func StartS3(t testing.TB) *S3 {
	t.Helper()
	s, stop, err := Start(t.TempDir())
	if errors.Is(err, ErrNotBuilt) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return s
}

// ErrNotBuilt: the server's module could not be fetched or built.
var ErrNotBuilt = errors.New("no S3 server")

// Start starts a server with all it writes in dir, which runs until stop.
func Start(dir string) (s *S3, stop func(), err error) {
	program, err := build("stores", "github.com/versity/versitygw/cmd/versitygw")
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrNotBuilt, err)
	}
	s = &S3{
		Root: Account{"rootaccess", "planted-root-secret"}, program: program,
		files: filepath.Join(dir, "files"),
	}
	for _, d := range []string{"files", "users", "sidecar"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			return nil, nil, err
		}
	}
	address, err := freeAddress()
	if err != nil {
		return nil, nil, err
	}
	s.Address = "http://" + address
	var log bytes.Buffer
	cmd := exec.Command(program, "--access", s.Root.Access, "--secret", s.Root.Secret, "--port", address, "--quiet", "--keep-alive",
		"--iam-dir", filepath.Join(dir, "users"), "posix", "--sidecar", filepath.Join(dir, "sidecar"), s.files)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	stop = func() { _ = cmd.Process.Kill(); <-ended }
	for range 300 {
		if resp, err := http.Get(s.Address + "/"); err == nil {
			resp.Body.Close()
			return s, stop, nil
		}
		select {
		case <-ended:
			return nil, nil, fmt.Errorf("the S3 server ended: %s", log.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
	stop()
	return nil, nil, errors.New("the S3 server did not start to listen")
}

// freeAddress is one that nothing listens at.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// Environment is what programs find the server and the account by; the address is
// the server's or that of a Proxy before it.
func (a Account) Environment(address string) []string {
	return []string{
		"AWS_ENDPOINT_URL=" + address, "AWS_ACCESS_KEY_ID=" + a.Access, "AWS_SECRET_ACCESS_KEY=" + a.Secret,
		"AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=/nonexistent", "AWS_SHARED_CREDENTIALS_FILE=/nonexistent", "AWS_PROFILE=", "AWS_SESSION_TOKEN=",
	}
}

// Use makes the test's own process find the server by Environment.
func (a Account) Use(t testing.TB, address string) {
	t.Helper()
	for _, v := range a.Environment(address) {
		name, value, _ := strings.Cut(v, "=")
		if value == "" {
			t.Setenv(name, "") // so that it is put back
			os.Unsetenv(name)
			continue
		}
		t.Setenv(name, value)
	}
}

// AddUser adds an account that may do nothing yet.
func (s *S3) AddUser(t testing.TB, a Account) {
	t.Helper()
	s.admin(t, "create-user", "--access", a.Access, "--secret", a.Secret, "--role", "user")
}

// AddBucket adds a bucket of the root account.
func (s *S3) AddBucket(t testing.TB, name string) {
	t.Helper()
	if err := os.MkdirAll(s.folder(name), 0o755); err != nil {
		t.Fatal(err)
	}
}

// folder is where the server has a bucket.
func (s *S3) folder(bucket string) string { return filepath.Join(s.files, bucket) }

// Put writes an object; the bucket is made when it is missing.
func (s *S3) Put(t testing.TB, bucket, key string, data []byte) {
	t.Helper()
	if err := s.Upload(t.Context(), bucket, key, data); err != nil {
		t.Fatal(err)
	}
}

// Upload is Put outside of tests.
func (s *S3) Upload(ctx context.Context, bucket, key string, data []byte) error {
	if err := os.MkdirAll(s.folder(bucket), 0o755); err != nil {
		return err
	}
	client := s3.New(s3.Options{
		BaseEndpoint: &s.Address, Region: "us-east-1", UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider(s.Root.Access, s.Root.Secret, ""),
	})
	_, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: &bucket, Key: &key, Body: bytes.NewReader(data)})
	return err
}

func (s *S3) admin(t testing.TB, args ...string) {
	t.Helper()
	all := append([]string{"admin", "--access", s.Root.Access, "--secret", s.Root.Secret, "--endpoint-url", s.Address}, args...)
	if text, err := exec.Command(s.program, all...).CombinedOutput(); err != nil {
		t.Fatalf("versitygw %s: %v: %s", args[0], err, text)
	}
}

func splitAddress(address string) (host, port string) {
	host, port, _ = net.SplitHostPort(address)
	return host, port
}
