// Package remotetest starts an S3 server for tests, and puts faults between it
// and the program.
//
// The server is versitygw, which companies put before their file systems: it checks
// signatures and permissions, pages listings and answers conditions the way S3
// does. It is a module of its own, stores/go.mod, so that what it needs is not
// needed by mixdown; it is built once, into the folder build of the repository. A
// machine that can't fetch it skips the tests that need it and says so.
package remotetest
