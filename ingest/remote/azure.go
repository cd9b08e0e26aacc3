package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// azure is a container of Azure's blob storage. Versions are ETags.
type azure struct{ container *container.Client }

// The variables of Azure's command line, which its other programs take too.
const (
	azureAccount    = "AZURE_STORAGE_ACCOUNT"
	azureKey        = "AZURE_STORAGE_KEY"
	azureToken      = "AZURE_STORAGE_SAS_TOKEN"
	azureConnection = "AZURE_STORAGE_CONNECTION_STRING"
)

func newAzure(bucket string) (*azure, error) {
	opts := &container.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport: &http.Client{Transport: transport()},
		Retry:     policy.RetryOptions{MaxRetries: -1}, // the client of this package asks again
	}}
	made := func(c *container.Client, err error) (*azure, error) {
		if err != nil {
			return nil, &fault{kind: badCredentials, code: "they can't be used"}
		}
		return &azure{c}, nil
	}
	if s := os.Getenv(azureConnection); s != "" {
		return made(container.NewClientFromConnectionString(s, bucket, opts))
	}
	account := os.Getenv(azureAccount)
	if account == "" {
		return nil, &fault{kind: noCredentials}
	}
	address := "https://" + account + ".blob.core.windows.net/" + bucket
	if key := os.Getenv(azureKey); key != "" {
		shared, err := container.NewSharedKeyCredential(account, key)
		if err != nil {
			return nil, &fault{kind: badCredentials, code: azureKey + " is no key"}
		}
		return made(container.NewClientWithSharedKeyCredential(address, shared, opts))
	}
	if token := os.Getenv(azureToken); token != "" {
		return made(container.NewClientWithNoCredential(address+"?"+strings.TrimPrefix(token, "?"), opts))
	}
	found, err := azidentity.NewDefaultAzureCredential(nil)
	if err != nil {
		return nil, &fault{kind: noCredentials}
	}
	return made(container.NewClient(address, found, opts))
}

func azureFault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var answered *azcore.ResponseError
	if !errors.As(err, &answered) {
		// Of any kind, see azidentity: no way to get a token worked.
		var refused *azidentity.AuthenticationFailedError
		var unknown interface{ NonRetriable() }
		if errors.As(err, &refused) {
			return &fault{kind: badCredentials, code: "no token was given for them"}
		}
		if errors.As(err, &unknown) {
			return &fault{kind: noCredentials}
		}
		return ofTransport(err)
	}
	f := ofStatus(answered.StatusCode, word(answered.ErrorCode))
	if answered.RawResponse != nil {
		f.after = retryAfter(answered.RawResponse.Header)
	}
	switch answered.ErrorCode {
	case "ContainerNotFound":
		f.kind = noBucket
	case "AuthenticationFailed", "InvalidAuthenticationInfo", "NoAuthenticationInformation":
		f.kind = badCredentials
	}
	return f
}

func (a *azure) list(ctx context.Context, prefix, token string) ([]item, string, error) {
	opts := &container.ListBlobsFlatOptions{Prefix: &prefix}
	if token != "" {
		opts.Marker = &token
	}
	answer, err := a.container.NewListBlobsFlatPager(opts).NextPage(ctx)
	if err != nil {
		return nil, "", azureFault(ctx, err)
	}
	var page []item
	if answer.Segment != nil {
		for _, b := range answer.Segment.BlobItems {
			if b.Name == nil {
				continue
			}
			it := item{key: *b.Name, size: -1}
			if p := b.Properties; p != nil {
				it = azureItem(*b.Name, p.ContentLength, p.ETag, p.LastModified)
			}
			page = append(page, it)
		}
	}
	next := ""
	if answer.NextMarker != nil {
		next = *answer.NextMarker
	}
	return page, next, nil
}

func (a *azure) stat(ctx context.Context, key string) (item, error) {
	p, err := a.container.NewBlobClient(key).GetProperties(ctx, nil)
	if err != nil {
		return item{}, azureFault(ctx, err)
	}
	return azureItem(key, p.ContentLength, p.ETag, p.LastModified), nil
}

// azureItem is what the service says of a blob; it may leave out any of it.
func azureItem(key string, length *int64, version *azcore.ETag, modified *time.Time) item {
	it := item{key: key, size: -1}
	if length != nil {
		it.size = *length
	}
	if version != nil {
		it.version = string(*version)
	}
	if modified != nil {
		it.modified = *modified
	}
	return it
}

func (a *azure) open(ctx context.Context, key, version string, offset int64) (io.ReadCloser, int64, item, error) {
	in := &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: offset}}
	if version != "" {
		tag := azcore.ETag(version)
		in.AccessConditions = &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: &tag}}
	}
	o, err := a.container.NewBlobClient(key).DownloadStream(ctx, in)
	if err != nil {
		return nil, 0, item{}, azureFault(ctx, err)
	}
	it := item{key: key, size: -1}
	if o.ETag != nil {
		it.version = string(*o.ETag)
	}
	if o.LastModified != nil {
		it.modified = *o.LastModified
	}
	at := int64(0)
	switch {
	case o.ContentRange != nil:
		var f *fault
		if at, it.size, f = contentRange(*o.ContentRange); f == nil && at > offset {
			f = &fault{code: "the store gives other bytes than it was asked for"}
		}
		if f != nil {
			o.Body.Close()
			return nil, 0, item{}, f
		}
	case o.ContentLength != nil:
		it.size = *o.ContentLength
	}
	return o.Body, at, it, nil
}

// put writes in one request, which Azure limits to 5,000 MiB.
func (a *azure) put(ctx context.Context, key string, body io.ReadSeeker, size int64) error {
	const most = 5000 << 20
	if size > most {
		return &fault{code: "a blob of more than 5,000 MiB can't be written at once"}
	}
	_, err := a.container.NewBlockBlobClient(key).Upload(ctx, unclosed{body}, (*blockblob.UploadOptions)(nil))
	if err != nil {
		return azureFault(ctx, err)
	}
	return nil
}

func (a *azure) remove(ctx context.Context, key string) error {
	_, err := a.container.NewBlobClient(key).Delete(ctx, nil)
	if err != nil {
		return azureFault(ctx, err)
	}
	return nil
}

// unclosed is a body whose owner closes it.
type unclosed struct{ io.ReadSeeker }

func (unclosed) Close() error { return nil }
