// Whether processes of this node may copy from each other's memory, found out by trying: of two children one
// reads from the other, as two processes of one job would.
#pragma once

#include <string>

namespace cluster::info {

/// Empty if they may; else why not, with the way out.
std::string single_copy_error();

}  // namespace cluster::info
