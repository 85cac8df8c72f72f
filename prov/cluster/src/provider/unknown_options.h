// Variables that look like options of the provider and are none: they have no effect, and a user believes
// that they have.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cluster::provider {

struct UnknownOption {
  std::string name;
  std::string line;  ///< for the user: that it has no effect, and which option is spelled most like it
};

/// Of an environment as `environ` is one; null: an empty one.
std::vector<UnknownOption> unknown_options(const char* const* environment);

/// How many letters have to be changed, left out or put in to make one word of the other.
std::size_t spelling_distance(std::string_view one, std::string_view other);

}  // namespace cluster::provider
