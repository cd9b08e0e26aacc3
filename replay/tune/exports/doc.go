// Package exports writes what a user applies: the choices that follow from a table
// of measurements, or from a mix, in the files and variables that the libraries
// themselves read.
//
//  1. A Decision is a contender for a range of sizes of one operation in groups of
//     one size (decision.go). From tables they come with the crossings as ends of
//     the ranges, from mixes with the rules' conditions.
//  2. Each format keeps the decisions that are its library's, turns our sizes into
//     the library's and refuses what the library would misread: several of these
//     files are read without a word about a mistake.
//  3. An Output is files, how to apply them, and how to see that they took effect.
//
// Formats are described in the files that write them; tests read each back with a
// parser made from the description alone.
package exports
