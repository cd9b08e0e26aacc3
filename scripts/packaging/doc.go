// Command packaging makes what a package of mixdown has beside its programs, from
// what these say of themselves: manual pages from the commands' help and the pages of
// "mixdown help", and the licences of everything that is linked in. scripts/dist.sh
// calls it.
package main
