// Package slowdown measures how much longer kernels take while communication runs
// beside them on their device.
//
// Kernels of one name and grid on one rank are a class: they do the same work. Those
// that began beside a communication kernel are compared with those that began beside
// none. A kernel of which communication ran beside for O of its D ns, and that takes d
// ns alone, lost the share x of the time beside communication:
//
//	D = d + x O,  factor = 1 / (1 - x)
//
// d is the median of those that began alone, x of a class the median of its kernels
// weighted by O, x of the run the median of its classes weighted by their time beside
// communication. The interval is from resampling classes, and kernels within them.
//
// Which kernels are compared is decided by when they began, not by whether they were
// overlapped: long ones meet communication more often than short ones. Kernels that
// other streams compute beside are left out, and classes whose kernels differ too much
// among themselves to do the same work. Communication that waits for other ranks is
// communication: its kernel holds a part of the device as well.
//
// Where there is too little evidence, or the 99 % interval has 1 in it, nothing is
// measured, and Result says why.
package slowdown
