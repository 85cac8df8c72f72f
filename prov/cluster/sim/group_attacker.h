// A host on the path of a group's multicast, without the key of the job. It sees every multicast frame, and
// keeps some, even frames of processes that have ended. It sends to single members or to all:
//
//   - a frame once more, soon or late
//   - a frame in the name of another member
//   - an altered frame
//   - the header of one frame with the content of another
//   - a frame without a seal, as the sender would have sent it without a key: with a correct checksum, at one
//     of the next places of the stream
//
// It does not see what travels in pipes: they stand for flows between two hosts. PathAttacker attacks flows.
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
  std::uint32_t rate_;  ///< chance of an attack for each frame that passes, in a million
  std::vector<Seen> kept_;
  std::uint64_t frames_ = 0;
};

}  // namespace cluster::sim
