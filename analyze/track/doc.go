// Package track says what a time line has of a rank's events: which are drawn, on which
// stream or thread they stand, and what belongs together on several ranks.
package track
