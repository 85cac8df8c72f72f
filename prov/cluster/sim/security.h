// The keys of a run. All hosts have one key in common. Some have a second one before or behind it, as during
// a change of keys. What is drawn here depends only on the seed, not on the library that seals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/seeded_random.h"
#include "sim/sim_process.h"

namespace cluster::sim {

std::vector<std::string_view> security_names();
/// Gives every host its keys. Returns a text that says what the hosts do with them; it is empty without
/// keys. `wanted`: none, auth, encrypt, or any (auth or encrypt). Throws if there is no such name, or no
/// library for it.
std::string draw_security(const std::string& wanted, std::vector<HostProfile>& hosts, SeededRandom& random);

}  // namespace cluster::sim
