// The questions that this side has sent, each to one address, and whose answers it awaits. Each challenge and each
// keep-alive carries 64 bits drawn for it alone (RFC 9000 section 8.2.1), and is answered by the endpoint that
// receives it there: an answer that repeats them comes from a host that receives what is sent to that address. So no
// peer can answer in the name of another address, however many challenges it has seen at its own.
//
// The last kRemembered are good for an answer, each once. An answer proves something about some moment since the
// question, not about now: a host on the way may have held it back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/address.h"
#include "base/environment.h"
#include "base/units.h"

namespace cluster::multipath {

class PathChallenges {
 public:
  explicit PathChallenges(Random& random) : random_(random) {}

  /// What a challenge to this address has to carry.
  std::uint64_t draw(Time now, const SocketAddress& to) {
    const std::uint64_t data = random_.next();
    if (sent_.size() < kRemembered) {
      sent_.push_back({data, to, now});
    } else {
      sent_[next_++ % kRemembered] = {data, to, now};
    }
    return data;
  }
  /// When the question was sent, if the answer repeats what was sent to the address that it comes from.
  std::optional<Time> answered(std::uint64_t data, const SocketAddress& from) {
    const auto found = std::ranges::find_if(
        sent_, [&](const Challenge& challenge) { return challenge.data == data && challenge.to == from; });
    if (found == sent_.end()) return std::nullopt;
    found->to = {};
    return found->at;
  }
  /// Bytes of memory it holds.
  std::size_t footprint() const { return sent_.capacity() * sizeof(Challenge); }

 private:
  /// Twice as many as there are paths to one peer, IP and EtherType.
  static constexpr std::size_t kRemembered = 32;

  struct Challenge {
    std::uint64_t data;
    SocketAddress to;
    Time at;
  };

  Random& random_;
  std::vector<Challenge> sent_;
  std::size_t next_ = 0;  ///< the oldest, once there are kRemembered
};

}  // namespace cluster::multipath
