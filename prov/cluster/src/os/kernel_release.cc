#include "os/kernel_release.h"

#include <sys/utsname.h>

#include <charconv>
#include <utility>

namespace cluster::os {

bool release_at_least(std::string_view release, unsigned version, unsigned patch_level) {
  const char* const end = release.data() + release.size();
  std::pair<unsigned, unsigned> is{};
  const auto [dot, error] = std::from_chars(release.data(), end, is.first);
  if (error != std::errc() || dot == end || *dot != '.') return false;
  if (std::from_chars(dot + 1, end, is.second).ec != std::errc()) return false;
  return is >= std::pair(version, patch_level);
}

bool kernel_at_least(unsigned version, unsigned patch_level) {
  utsname name{};
  return uname(&name) == 0 && release_at_least(name.release, version, patch_level);
}

}  // namespace cluster::os
