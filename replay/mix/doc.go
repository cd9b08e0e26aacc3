// Package mix decides which backend runs which operation, and checks that the
// resulting plan can't deadlock.
//
// A mix is a list of rules in order, the first that matches decides:
//
//	all_to_all=openmpi,all_reduce@>=1MiB=nccl,*=gloo
//
// A rule's left side is an operation or *, with conditions behind @: a size
// (@>=1MiB, @<64KiB, @4KiB-1MiB) and a group (@group:tp, by name or
// description). The size of an operation is the largest number of bytes that
// any member contributes or receives, so that all members decide alike: a
// choice by a rank's own size would send members of one all_to_allv to
// different libraries, and hang.
package mix
