// Package imports reads other tools' measurements of communication libraries.
//
// Every tool has its own idea of an operation's size; convention.go turns them into
// what one rank contributes and receives. What a log does not hold (the library,
// the number of ranks, where the buffers were) comes from Options; when it is in
// neither, the error says which option is missing. A row that can't be believed
// (wrong data, no time) is left out with a diagnostic.
//
// Times: tools that print a time for each rank or a maximum over ranks give the
// slowest rank's, as the project's own measurements do. Others give a mean over
// ranks; Row.Statistic can't tell that, and the formats' comments do.
package imports
