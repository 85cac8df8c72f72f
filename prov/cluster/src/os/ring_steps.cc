#include "os/ring_steps.h"

#include <algorithm>
#include <array>
#include <vector>

#include "os/descriptor.h"

namespace cluster::os {

void RingSteps::free_dead() {
  std::array<std::optional<bool>, kRingsMax + 1> known;
  const auto alive = [&](std::uint32_t owner) {
    std::optional<bool>& answer = known[std::min<std::size_t>(owner, kRingsMax)];
    if (!answer) answer = owner == self_ || kernel_.lives(owner);
    return *answer;
  };
  for (RingList& list : table_.lists) {
    remove(list, list.free_dead(alive));
  }
}

/// If the process dies during this function, the remaining places stay in the table. The next free_dead() of
/// any process removes them.
void RingSteps::remove(RingList& list, const std::vector<std::uint64_t>& serials) {
  kernel_.withdraw(serials);
  for (const std::uint64_t serial : serials) list.erase(serial);
}

std::optional<RingSteps::Taken> RingSteps::take(RingKind kind, const SocketAddress& address,
                                                const RingLayout& layout, std::size_t blocks,
                                                const RingLimits& limits, std::string& reason) {
  free_dead();
  RingList& list = table_.list(kind);
  RingPlace* const free = list.find_free(layout);
  if (list.owned() >= limits.members_max || (free == nullptr && list.size() >= kRingsMax)) {
    reason = kGroupIsFull;
    return std::nullopt;
  }
  if (free != nullptr) {
    if (!kernel_.inherit(free->serial)) {
      reason = "a receive ring of this user is lost";
      return std::nullopt;
    }
    free->owner = self_;
    free->address = address;
    ++list.changes;
    return Taken{free->serial, free->blocks, true};
  }
  const std::uint64_t serial = table_.serials + 1;
  if (const int error = kernel_.open(serial); error != 0) {
    reason = "socket: " + error_text(error);
    return std::nullopt;
  }
  if (table_.blocks() + blocks > limits.blocks_max) blocks = 1;
  table_.serials = serial;
  list.reserve(serial, self_, address, layout, static_cast<std::uint32_t>(blocks));
  return Taken{serial, blocks, false};
}

bool RingSteps::enter(RingKind kind, std::uint64_t serial, std::string& reason) {
  free_dead();
  RingList& list = table_.list(kind);
  RingPlace* const place = list.find(serial);
  if (place == nullptr || !list.is_next(serial)) return false;
  const std::size_t members = list.entered();
  if (members != 0 && kernel_.sockets_in_fanout(list.fanout_id).value_or(members) != members) return false;
  place->state = RingPlace::State::entering;
  int error = kernel_.enter_fanout(members == 0, list.fanout_id);
  if (error == 0) error = kernel_.keep(serial);
  if (error != 0) {
    reason = "the kernel refuses to share frames among receive rings (PACKET_FANOUT): " + error_text(error);
    return false;
  }
  place->state = RingPlace::State::entered;
  ++list.changes;
  return true;
}

RingProgram RingSteps::program(RingKind kind) const {
  const RingList& list = table_.list(kind);
  return {spreading(list.targets()), list.changes};
}

void RingSteps::readdress(RingKind kind, std::uint64_t serial, const SocketAddress& address) {
  RingList& list = table_.list(kind);
  RingPlace* const place = list.find(serial);
  if (place == nullptr) return;
  place->address = address;
  ++list.changes;
}

void RingSteps::leave(RingKind kind, std::uint64_t serial) {
  RingList& list = table_.list(kind);
  RingPlace* const place = list.find(serial);
  if (place != nullptr) {
    place->owner = 0;
    ++list.changes;
  }
  std::vector<std::uint64_t> serials = list.trim();
  if (place != nullptr && place->state != RingPlace::State::entered &&
      std::find(serials.begin(), serials.end(), serial) == serials.end()) {
    serials.push_back(serial);
  }
  remove(list, serials);
}

}  // namespace cluster::os
