// Package straggler says which ranks the others wait for, and how long.
//
// It needs matched collectives (package collective) on one time line (package
// align, applied before).
//
// # What a rank causes
//
// Let n members arrive at a collective at s1 <= s2 <= ... <= sn. They wait
//
//	Wait = sum of (sn - si) = sum over k < n of k x (s(k+1) - sk)
//
// in total: between two arrivals, those that are there wait. During the last of
// these gaps they wait for one rank alone, so that is what it caused:
//
//	By = sn - s(n-1),   Caused = By x (n - 1)
//
// Had it come with the one before it, just that would have been saved. What is
// left of Wait is owed to several ranks together and is attributed to nobody.
//
// In a broadcast or scatter the others wait for the root only, in a reduce or
// gather only the root waits; Wait and Caused count those who do.
//
// # What is not attributed
//
// By is an error of the clocks as likely as not when it is within their
// resolution (align.Result.Resolution of the last two ranks, MinResolution at
// least): a tie. Collectives between ranks whose clocks can't be compared and
// impossible matches are counted and left out.
//
// # Late because of another
//
// A rank that waited in one group arrives late in the next one, where others wait
// for it in turn. Late.Inherited is what it waited in its collective before, at
// most By, and Late.From the rank that was waited for there (followed back when
// that one waited too), unless all members were in that collective and were held
// up alike. Caused is not reduced by it, because with communication beside the
// computation the wait may have cost nothing.
package straggler
