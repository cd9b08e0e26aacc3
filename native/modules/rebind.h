#pragma once

namespace mixdown {

/// Makes the calls that a loaded library makes of a function of another library go to
/// `to` instead: the places in its tables of addresses that the dynamic linker fills
/// (System V ABI, "Dynamic Linking"). `library` is how its file name begins. Returns how
/// many places there were: 0 where it is not loaded or does not call the function.
/// Addresses that it has copied from there, and what others call, are as they were.
int rebind(const char* library, const char* function, void* to);

}  // namespace mixdown
