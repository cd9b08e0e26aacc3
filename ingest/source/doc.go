// Package source turns what a user types into one stream of bytes per trace
// file.
//
// [Find] expands files, folders, globs, archives, "-", web addresses and names in
// object stores into a list of [File]s without reading them; [File.Open] gives
// the decompressed bytes of one. What a file is follows from its first bytes, not
// from its name: gzip (also several members, also cut), zstd, bzip2, or plain.
//
// Uploaded traces are hostile input: the number of files, the decompressed
// bytes of each and the compression ratio are limited, and nothing is ever
// written to disk, so the names inside archives cannot escape.
//
// The rank of a file is best read from its contents. [RankFromName] and
// [RankFromRegexp] read it from the name when the contents do not tell.
package source
