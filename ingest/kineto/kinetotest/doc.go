// Package kinetotest reads traces for tests: those of the project, and real ones
// of other people where the environment variable MIXDOWN_CORPUS names their
// folder.
package kinetotest
