// Whether processes of this node may copy from each other's memory (process_vm_readv). It is tried between
// two child processes, as between two processes of one job.
#pragma once

#include <string>

namespace cluster::info {

/// Empty if they may; else the cause, with the cure.
std::string single_copy_error();

}  // namespace cluster::info
