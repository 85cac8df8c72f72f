// Tells whether processes of this node may copy from each other's memory (process_vm_readv). The probe tries
// it between two child processes, which stand for two processes of one job.
#pragma once

#include <string>

namespace cluster::info {

/// Empty if they may; else the cause and the remedy.
std::string single_copy_error();

}  // namespace cluster::info
