package remote

import (
	"fmt"
	"net/url"
	"strings"
)

// The schemes of names that are no files.
const (
	schemeHTTPS = "https"
	schemeHTTP  = "http"
	schemeS3    = "s3"
	schemeGCS   = "gs"
	schemeAzure = "azblob"
)

// name is where an object is.
type name struct {
	scheme string
	bucket string   // or container; "" of a web address
	key    string   // without the leading slash; "" of a web address
	web    *url.URL // of a web address
}

// schemeOf returns the scheme of a name and what follows "://"; "" for a file.
func schemeOf(s string) (scheme, rest string) {
	before, rest, ok := strings.Cut(s, "://")
	if !ok {
		return "", ""
	}
	switch before = strings.ToLower(before); before {
	case schemeHTTPS, schemeHTTP, schemeS3, schemeGCS, schemeAzure:
		return before, rest
	}
	return "", ""
}

// Is tells whether a name is that of a remote object: whether it begins with
// https://, http://, s3://, gs:// or azblob://.
func Is(s string) bool {
	scheme, _ := schemeOf(s)
	return scheme != ""
}

// Listable tells whether the objects below a name can be listed: object stores
// can, web servers have no way to ask.
func Listable(s string) bool {
	scheme, _ := schemeOf(s)
	return scheme == schemeS3 || scheme == schemeGCS || scheme == schemeAzure
}

// parse takes a name apart.
func parse(s string) (name, error) {
	scheme, rest := schemeOf(s)
	switch scheme {
	case "":
		return name{}, fmt.Errorf("%w: %s is not remote: expected https://, s3://, gs:// or azblob://", ErrName, s)
	case schemeHTTPS, schemeHTTP:
		u, err := url.Parse(s)
		if err != nil || u.Host == "" {
			return name{}, fmt.Errorf("%w: %s is not a web address: expected %s://HOST/PATH", ErrName, Redact(s), scheme)
		}
		return name{scheme: scheme, web: u}, nil
	}
	bucket, key, _ := strings.Cut(rest, "/")
	if bucket == "" || strings.ContainsAny(bucket, "*?[ @") {
		return name{}, fmt.Errorf("%w: %s names no bucket: expected %s://BUCKET/KEY", ErrName, Redact(s), scheme)
	}
	return name{scheme: scheme, bucket: bucket, key: key}, nil
}

// Redact returns a name as it may be shown and written: of a web address without
// user, password, query and fragment, any of which may be the key to the object.
// Other names hold nothing secret and are returned as they are.
func Redact(s string) string {
	scheme, rest := schemeOf(s)
	if scheme != schemeHTTPS && scheme != schemeHTTP {
		return s
	}
	// Not by parsing: what can't be parsed is to be shown too. A password may
	// hold any of the delimiters when its writer did not escape it, so that all
	// up to the last @ that may belong to it goes.
	if i := strings.IndexAny(rest, "?#"); i >= 0 {
		if at := strings.LastIndexByte(rest, '@'); at > i && !strings.Contains(rest[:i], "/") {
			i = strings.IndexAny(rest[at:], "?#") + at
			if i < at {
				i = len(rest)
			}
		}
		rest = rest[:i]
	}
	host := rest
	if i := strings.IndexByte(rest, '/'); i >= 0 && !strings.Contains(rest[i:], "@") {
		host = rest[:i]
	}
	if at := strings.LastIndexByte(host, '@'); at >= 0 {
		rest = rest[at+1:]
	}
	return scheme + "://" + rest
}

// RedactAll returns a command line's arguments as they may be shown.
func RedactAll(args []string) []string {
	if args == nil {
		return nil
	}
	list := make([]string, len(args))
	for i, a := range args {
		list[i] = Redact(a)
		// --flag=https://...
		if before, after, ok := strings.Cut(a, "="); ok && strings.HasPrefix(a, "-") && Is(after) {
			list[i] = before + "=" + Redact(after)
		}
	}
	return list
}

// Join is the name of what is called sub below a name: a slash between them, once.
func Join(prefix, sub string) string {
	return strings.TrimRight(prefix, "/") + "/" + sub
}
