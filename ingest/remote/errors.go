package remote

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"
	"time"
)

// Errors of this package. They come wrapped, with the object's name and what to
// do about it; they never hold an address with its query, a key or a token.
var (
	// ErrName means that a name can't be one of an object.
	ErrName = errors.New("bad name")

	// ErrNotFound means that there is no such object or bucket. It is an
	// fs.ErrNotExist too.
	ErrNotFound = fmt.Errorf("%w", fs.ErrNotExist)

	// ErrCredentials means that there are no credentials, or that the store
	// does not know them.
	ErrCredentials = errors.New("no credentials")

	// ErrDenied means that the credentials do not allow the request.
	ErrDenied = errors.New("access denied")

	// ErrChanged means that an object was replaced while it was read.
	ErrChanged = errors.New("replaced while it was read")

	// ErrUnavailable means that the store did not answer, or said "later", as
	// often as it was asked.
	ErrUnavailable = errors.New("not available")

	// ErrCannot means that the kind of store can't do what was asked: a web
	// server lists and takes nothing.
	ErrCannot = errors.New("not possible")
)

// IsNotFound tells whether an error says that there is no such object or bucket.
func IsNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// kind is what a failed request means.
type kind uint8

const (
	other kind = iota
	notFound
	noBucket
	noCredentials  // none were found
	badCredentials // the store does not know them
	denied
	changed
	temporary
	beyondEnd // the range begins behind the object's end
)

// fault is a failed request: what a store's answer means, without its text.
type fault struct {
	kind  kind
	code  string        // the store's word for it, or the HTTP status
	after time.Duration // when to ask again, if the store says so
}

func (f *fault) Error() string { return f.code }

// ofStatus is the fault of an HTTP answer. code is the store's own word for it,
// "" when it has none.
func ofStatus(status int, code string) *fault {
	f := &fault{code: fmt.Sprintf("HTTP status %d", status)}
	if code != "" {
		f.code = fmt.Sprintf("%s, HTTP status %d", code, status)
	}
	switch {
	case status == 404 || status == 410:
		f.kind = notFound
	case status == 401:
		f.kind = badCredentials
	case status == 403:
		f.kind = denied
	case status == 412:
		f.kind = changed
	case status == 416:
		f.kind = beyondEnd
	case status == 408 || status == 425 || status == 429 || status >= 500 && status != 501 && status != 505:
		f.kind = temporary
	}
	return f
}

// ofTransport is the fault of a request that got no answer. Errors of package
// net/http quote the address; those below them do not.
func ofTransport(err error) *fault {
	f := &fault{kind: temporary, code: "the connection failed"}
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		f.code = "the host " + dns.Name + " is not known"
		if dns.IsNotFound {
			f.kind = other
		}
	case errors.As(err, &op) && op.Op == "dial" && op.Addr != nil:
		f.code = "no connection to " + op.Addr.String()
	case errors.Is(err, context.DeadlineExceeded):
		f.code = "no answer in time"
	case strings.Contains(err.Error(), "certificate"):
		f.kind, f.code = other, "the server's certificate is not trusted"
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		f.kind, f.code = other, "the server speaks HTTP, not HTTPS"
	}
	return f
}

// explain turns the error of a request into what the user is told. doing is a
// verb: "read", "list", "write", "remove".
func explain(n name, shown, doing string, err error) error {
	var f *fault
	if errors.Is(err, context.Canceled) {
		return context.Canceled
	}
	if !errors.As(err, &f) {
		return fmt.Errorf("cannot %s %s: %w", doing, shown, err)
	}
	bucket := n.scheme + "://" + n.bucket
	switch f.kind {
	case notFound:
		if n.web != nil {
			return fmt.Errorf("%s: %w (%s): check the address", shown, ErrNotFound, f.code)
		}
		return fmt.Errorf("no such object: %s: %w", shown, ErrNotFound)
	case noBucket:
		return fmt.Errorf("no such bucket: %s: %w: check its name%s", bucket, ErrNotFound, where(n.scheme))
	case noCredentials:
		return fmt.Errorf("%w for %s: %s", ErrCredentials, bucket, credentials(n.scheme))
	case badCredentials:
		if n.web != nil {
			return fmt.Errorf("cannot %s %s: %w: the server wants a name and password (%s): https://USER:PASSWORD@HOST/PATH, or a signed address", doing, shown, ErrCredentials, f.code)
		}
		return fmt.Errorf("cannot %s %s: %w that the store accepts (%s): %s", doing, shown, ErrCredentials, f.code, credentials(n.scheme))
	case denied:
		if n.web != nil {
			return fmt.Errorf("cannot %s %s: %w (%s): a signed address may have expired, or was cut by the shell: make a new one and put it in quotes", doing, shown, ErrDenied, f.code)
		}
		return fmt.Errorf("cannot %s %s: %w (%s): the credentials need %s", doing, shown, ErrDenied, f.code, permission(n, doing))
	case changed:
		return fmt.Errorf("%s: %w: run the command again", shown, ErrChanged)
	case temporary:
		return fmt.Errorf("cannot %s %s: %w: %s: try again later; if it stays so, check the name%s", doing, shown, ErrUnavailable, f.code, where(n.scheme))
	}
	return fmt.Errorf("cannot %s %s: %s: check the name%s", doing, shown, f.code, where(n.scheme))
}

// where says what decides which store is asked.
func where(scheme string) string {
	switch scheme {
	case schemeS3:
		return ", AWS_REGION, and AWS_ENDPOINT_URL if the store is not AWS's"
	case schemeAzure:
		return ", and AZURE_STORAGE_ACCOUNT"
	}
	return ""
}

// credentials says how to have some.
func credentials(scheme string) string {
	switch scheme {
	case schemeS3:
		return "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run on a machine that has a role"
	case schemeGCS:
		return "run \"gcloud auth application-default login\", or set GOOGLE_APPLICATION_CREDENTIALS, or run on a machine that has a service account"
	case schemeAzure:
		return "set AZURE_STORAGE_CONNECTION_STRING, or AZURE_STORAGE_ACCOUNT with AZURE_STORAGE_KEY, AZURE_STORAGE_SAS_TOKEN or \"az login\""
	}
	return "put them into the address"
}

// permission is what the store calls the right to do something.
func permission(n name, doing string) string {
	rights := map[string]map[string]string{
		schemeS3:    {"read": "s3:GetObject", "list": "s3:ListBucket", "write": "s3:PutObject", "remove": "s3:DeleteObject"},
		schemeGCS:   {"read": "storage.objects.get", "list": "storage.objects.list", "write": "storage.objects.create", "remove": "storage.objects.delete"},
		schemeAzure: {"read": "the role Storage Blob Data Reader", "list": "the role Storage Blob Data Reader", "write": "the role Storage Blob Data Contributor", "remove": "the role Storage Blob Data Contributor"},
	}
	return rights[n.scheme][doing] + " on " + n.scheme + "://" + n.bucket
}
