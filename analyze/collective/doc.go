// Package collective finds the same communication on all its ranks.
//
// Groups are identified by their members, not by their name alone. Collectives
// of a group are matched by the ids the trace carries, else by aligning the
// sequences of (operation, type, size, step) that the members issued, so that one
// missing event costs one match and not all later ones. Sends are matched with
// receives by peer, in order. What stays unmatched is listed with the reason.
package collective
