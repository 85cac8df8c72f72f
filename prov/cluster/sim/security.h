// Keys of a run: all hosts have one in common, some a second one before or behind it, as while a key is changed.
// What is drawn here depends on the seed alone, never on the library that seals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/seeded_random.h"
#include "sim/sim_process.h"

namespace cluster::sim {

std::vector<std::string_view> security_names();
/// Gives every host its keys and returns what is done with them, in a word. `wanted`: none, auth, encrypt, or any (one
/// of these two). Throws if there is no such name, or no library for it.
std::string draw_security(const std::string& wanted, std::vector<HostProfile>& hosts, SeededRandom& random);

}  // namespace cluster::sim
