// Package shim writes what applies a mix to a job of PyTorch or DeepSpeed.
//
// In torch.distributed a process group has one backend for each type of device,
// whatever the operation and its size. Mixing is done with several groups over
// the same ranks, and something that chooses between them. That something is one
// Python module: module.py with the rules of the mix and a head that says how to
// use it. It is tested under PyTorch by testdata/generate/check_shim.py.
//
// What the module can't do is refused in two places. Write refuses what is wrong
// with the mix wherever it runs (rules.go); the module's install() what is wrong
// where it runs, such as a PyTorch without the backend.
//
// DeepSpeed has one backend for everything, and no setting for another. It calls
// torch.distributed, so the module serves it as well; what is written for it is
// the configuration of its communication logger, which shows whether that helped.
package shim
