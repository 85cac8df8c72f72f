// Which Linux this is: for what the kernel does without a word when it is too old for it, so that asking it shows nothing. All
// else is asked of the kernel itself, which may have been given what its release does not say.
#pragma once

#include <string_view>

namespace cluster::os {

/// True if a release as uname(2) gives it ("6.1.0-13-amd64") is that version or a later one; false also if it is no release.
bool release_at_least(std::string_view release, unsigned version, unsigned patch_level);

/// The same of the kernel that runs.
bool kernel_at_least(unsigned version, unsigned patch_level);

}  // namespace cluster::os
