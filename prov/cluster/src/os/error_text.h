// What the system says of a call that failed. Where a limit that the administrator sets was reached, the text names the cure. The
// caller says what the call was for.
#pragma once

#include <cerrno>
#include <string>

namespace cluster::os {

/// "Address already in use", "Too many open files: raise ulimit -n".
std::string error_text(int error);

/// "bind: Address already in use": a system call has just failed with errno.
std::string failed(const char* call);

}  // namespace cluster::os
