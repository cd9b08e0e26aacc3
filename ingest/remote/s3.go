package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// s3Store is a bucket of S3 or of what speaks its language. Versions are ETags.
type s3Store struct {
	bucket string
	config aws.Config

	mu     sync.Mutex
	client *s3.Client
}

// defaultRegion is asked when none is configured; its answer names the right one.
const defaultRegion = "us-east-1"

func newS3(ctx context.Context, bucket string) (*s3Store, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.ResponseHeaderTimeout = answerTimeout
		t.MaxIdleConnsPerHost = 32
	})
	cfg, err := config.LoadDefaultConfig(ctx, config.WithHTTPClient(client), config.WithDefaultRegion(defaultRegion),
		// Once: the client of this package asks again, and knows when.
		config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	if err != nil {
		var missing config.SharedConfigProfileNotExistError
		if errors.As(err, &missing) {
			return nil, &fault{kind: badCredentials, code: "no such profile: " + missing.Profile}
		}
		return nil, &fault{kind: badCredentials, code: "the configuration of AWS can't be read"}
	}
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return nil, &fault{kind: noCredentials}
	}
	s := &s3Store{bucket: bucket, config: cfg}
	s.connect()
	return s, nil
}

func (s *s3Store) connect() {
	s.client = s3.NewFromConfig(s.config, func(o *s3.Options) {
		// Stores at addresses of their own rarely have a host for each bucket.
		o.UsePathStyle = o.BaseEndpoint != nil
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
	})
}

func (s *s3Store) current() *s3.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// fault says what an error of the library means.
func (s *s3Store) fault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var answered *smithyhttp.ResponseError
	if !errors.As(err, &answered) || answered.Response == nil {
		var api smithy.APIError
		if errors.As(err, &api) { // an answer inside an answer
			return &fault{kind: temporary, code: api.ErrorCode()}
		}
		if strings.Contains(err.Error(), "failed to refresh cached credentials") {
			return &fault{kind: badCredentials, code: "they could not be renewed"}
		}
		return ofTransport(err)
	}
	code := ""
	var api smithy.APIError
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	f := ofStatus(answered.HTTPStatusCode(), word(code))
	f.after = retryAfter(answered.Response.Header)
	switch code {
	case "NoSuchBucket":
		f.kind = noBucket
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidClientTokenId":
		f.kind = badCredentials
	case "RequestTimeTooSkewed":
		f.kind, f.code = other, "RequestTimeTooSkewed: this machine's clock is wrong"
	case "SlowDown", "RequestTimeout", "InternalError", "OperationAborted":
		f.kind = temporary
	}
	if s.moved(answered.Response.Header.Get("X-Amz-Bucket-Region")) {
		f.kind = temporary // asked again, where the bucket is
	}
	return f
}

// moved remembers the bucket's region. It reports false when it was known.
func (s *s3Store) moved(region string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if region == "" || region == s.config.Region || os.Getenv("AWS_ENDPOINT_URL") != "" {
		return false
	}
	s.config.Region = region
	s.connect()
	return true
}

// word is a store's error code when it looks like one: nothing else of an answer
// is shown.
func word(code string) string {
	if len(code) > 64 || strings.ContainsFunc(code, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9')
	}) {
		return ""
	}
	return code
}

func (s *s3Store) list(ctx context.Context, prefix, token string) ([]item, string, error) {
	in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix}
	if token != "" {
		in.ContinuationToken = &token
	}
	answer, err := s.current().ListObjectsV2(ctx, in)
	if err != nil {
		return nil, "", s.fault(ctx, err)
	}
	page := make([]item, len(answer.Contents))
	for i, o := range answer.Contents {
		page[i] = item{key: aws.ToString(o.Key), size: aws.ToInt64(o.Size), version: aws.ToString(o.ETag), modified: aws.ToTime(o.LastModified)}
	}
	if !aws.ToBool(answer.IsTruncated) {
		return page, "", nil
	}
	return page, aws.ToString(answer.NextContinuationToken), nil
}

func (s *s3Store) stat(ctx context.Context, key string) (item, error) {
	h, err := s.current().HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: &key})
	if err != nil {
		err := s.fault(ctx, err)
		if f, ok := errors.AsType[*fault](err); ok && (f.kind == denied || f.kind == other) {
			// The answer to HEAD has no body, which would say more than "no".
			var body io.ReadCloser
			if body, _, _, err = s.open(ctx, key, "", 0); err == nil {
				body.Close()
				err = f
			}
		}
		return item{}, err
	}
	return item{key: key, size: aws.ToInt64(h.ContentLength), version: aws.ToString(h.ETag), modified: aws.ToTime(h.LastModified)}, nil
}

func (s *s3Store) open(ctx context.Context, key, version string, offset int64) (io.ReadCloser, int64, item, error) {
	in := &s3.GetObjectInput{Bucket: &s.bucket, Key: &key}
	if version != "" {
		in.IfMatch = &version
	}
	if offset > 0 {
		in.Range = aws.String("bytes=" + strconv.FormatInt(offset, 10) + "-")
	}
	o, err := s.current().GetObject(ctx, in)
	if err != nil {
		return nil, 0, item{}, s.fault(ctx, err)
	}
	it := item{key: key, size: aws.ToInt64(o.ContentLength), version: aws.ToString(o.ETag), modified: aws.ToTime(o.LastModified)}
	at := int64(0)
	if o.ContentRange != nil {
		var f *fault
		if at, it.size, f = contentRange(*o.ContentRange); f == nil && at > offset {
			f = &fault{code: "the store gives other bytes than it was asked for"}
		}
		if f != nil {
			o.Body.Close()
			return nil, 0, item{}, f
		}
	} else if o.ContentLength == nil {
		it.size = -1
	}
	return o.Body, at, it, nil
}

// put writes in one request, which S3 limits to 5 GiB.
func (s *s3Store) put(ctx context.Context, key string, body io.ReadSeeker, size int64) error {
	const most = 5 << 30
	if size > most {
		return &fault{code: "an object of more than 5 GiB can't be written at once"}
	}
	_, err := s.current().PutObject(ctx, &s3.PutObjectInput{Bucket: &s.bucket, Key: &key, Body: body, ContentLength: &size})
	if err != nil {
		return s.fault(ctx, err)
	}
	return nil
}

func (s *s3Store) remove(ctx context.Context, key string) error {
	_, err := s.current().DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &key})
	if err != nil {
		return s.fault(ctx, err)
	}
	return nil
}
