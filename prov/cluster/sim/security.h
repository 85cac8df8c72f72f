// Keys of a run: all hosts have one in common, some a second one before or behind it, as while a key is changed. Or all have
// both, and each peer has its own, which is the common one (FI_AV_AUTH_KEY). What is
// drawn here depends on the seed alone, never on the library that seals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/seeded_random.h"
#include "sim/sim_process.h"

namespace cluster::sim {

std::vector<std::string_view> security_names();
/// Gives every host its keys and returns what is done with them, in a word. `wanted`: none, auth, encrypt, or any (one
/// of these two); realms (one of these two, and each peer has its key). Throws if there is no such name, or no library for it.
std::string draw_security(const std::string& wanted, std::vector<HostProfile>& hosts, SeededRandom& random);

/// With whose key the hosts know each other; 0: keys are for every peer.
std::uint8_t realm_of_all(const std::vector<HostProfile>& hosts);

}  // namespace cluster::sim
