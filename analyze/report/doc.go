// Package report makes the analysis of a run, and shows it as text and as JSON.
//
// The JSON is a promise to scripts: fields are added, never changed. A quantity
// that is not known is null. "mixdown help schema" documents every field.
package report
