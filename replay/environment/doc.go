// Package environment knows which variables steer communication libraries, and
// tells environments apart by them: ranks with different ones may choose different
// algorithms for one operation and wait for each other for ever.
package environment
