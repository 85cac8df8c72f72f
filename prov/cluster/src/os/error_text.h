// What the system says of a call that failed, and the cure where a resource has run out that the administrator sets. What a
// call was for is the caller's to say.
#pragma once

#include <cerrno>
#include <string>

namespace cluster::os {

/// "Address already in use", "Too many open files: raise ulimit -n".
std::string error_text(int error);

/// "bind: Address already in use": a system call has just failed with errno.
std::string failed(const char* call);

}  // namespace cluster::os
