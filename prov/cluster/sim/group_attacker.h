// A host on the path of a group's multicast, without the key of the job. It sees every frame, keeps some, also of processes that
// have ended, and sends to single members or to all: the same once more, soon or late; the same in another member's name; altered
// ones; the header of one with what another carries; and bare ones that are as the sender would have sent them without a key, with
// a checksum that is right, at the places of the stream that come next. What travels in pipes it does not see: that are flows, which
// PathAttacker attacks.
//
// It acts only when a frame passes, so a silent network stays silent.
#pragma once

#include <vector>

#include "sim/group_network.h"
#include "sim/seeded_random.h"

namespace cluster::sim {

class GroupAttacker final : public GroupTap {
 public:
  GroupAttacker(GroupNetwork& network, std::vector<SocketAddress> hosts, SeededRandom random);

  void see(const SocketAddress& from, const std::vector<std::byte>& bytes) override;
  std::uint64_t frames() const { return frames_; }

 private:
  static constexpr std::size_t kKept = 256;
  struct Seen {
    SocketAddress from;
    std::vector<std::byte> bytes;
  };

  void forge(Seen& frame);
  void alter(std::vector<std::byte>& bytes);
  void unseal(std::vector<std::byte>& bytes);
  void splice(std::vector<std::byte>& bytes);

  GroupNetwork& network_;
  std::vector<SocketAddress> hosts_;
  SeededRandom random_;
  std::uint32_t rate_;  ///< frames with which it acts, parts in a million
  std::vector<Seen> kept_;
  std::uint64_t frames_ = 0;
};

}  // namespace cluster::sim
