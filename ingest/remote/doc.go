// Package remote reads and writes objects that are not files: of web servers
// (https://) and of object stores (s3://, gs://, azblob://).
//
// Objects are streamed, never copied to disk first. A [Client] opens an object
// as a stream that survives dropped connections: it asks again for what is
// missing, from the byte where it stopped, and only of the version that it began
// with. An object that was replaced meanwhile is an error, [ErrChanged], never a
// mixture of two. Answers that say "later" (429, 5xx) are asked again, with
// growing pauses.
//
// Credentials are found by the store's own library, as its other programs find
// them: AWS's SDK for s3, Google's application default credentials for gs,
// Azure's SDK for azblob. A web address carries its own, as a signed query or
// user:password@. What is secret in a name stays out of everything that is shown
// or written: see [Redact]. Errors are worded here and not by the libraries, whose
// texts quote addresses with their signatures.
//
// Each kind of store is the five requests of the interface store, through AWS's
// and Azure's libraries, and through Google's JSON interface with Google's
// credentials. Portable layers were weighed: gocloud.dev/blob needs Google's
// storage library and with it gRPC, which is more than all of mixdown.
package remote
