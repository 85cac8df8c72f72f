// The exchanges that collective operations are made of. Each function writes the part of one member into a
// schedule, to begin after a step, and returns the step after which that part is done. `phase` keeps the
// messages of several exchanges in one schedule apart.
//
// Which of them an operation takes is decided in composition.cc.
#pragma once

#include <span>
#include <vector>

#include "collective/schedule.h"
#include "collective/team_layout.h"

namespace cluster::collective {

/// Messages of one exchange have numbers below this.
inline constexpr unsigned kPhaseNumbers = 256;

/// A long buffer travels in pieces, so that a member passes one on while it receives the next.
class Pieces {
 public:
  /// Of at least `shortest` bytes, and no more of them than an exchange has numbers.
  Pieces(std::size_t length, std::size_t shortest);
  std::size_t count() const { return count_; }
  template <typename Span>
  Span of(Span whole, std::size_t index) const {
    const std::size_t begin = index * size_;
    return whole.subspan(begin, std::min(size_, whole.size() - begin));
  }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_;
  std::size_t count_;
};

/// `buffer` of the root reaches all members of a tree. `after` is one step for each piece, or one for all.
Step send_down(Schedule& schedule, const Tree& tree, unsigned phase, Bytes buffer, const Pieces& pieces,
               std::span<const Step> after);
/// The same by one multicast of each piece, by the leader of the root's node to the leaders of the others. `crossing` is the
/// phase of what crosses the network. Members write nothing into their buffers before `after`.
Step send_to_nodes(Schedule& schedule, const TeamLayout& layout, Member root, unsigned phase,
                   unsigned crossing, Bytes buffer, const Pieces& pieces, std::span<const Step> after);
/// The contributions of all members of a tree are combined at its root. `own` is this member's; `sum`, which
/// may be the same memory, is where it combines those of its children: used only if it has any, or is the
/// root. Returns a step for each piece.
std::vector<Step> combine_up(Schedule& schedule, const Tree& tree, unsigned phase, ConstBytes own, Bytes sum,
                             const Pieces& pieces, Step after);

/// No member of a list is done before all have begun (dissemination).
Step meet(Schedule& schedule, std::span<const Member> list, std::size_t self, unsigned phase, Step after);
/// All members of a list combine `sum` (recursive doubling): for short ones.
Step combine_among(Schedule& schedule, std::span<const Member> list, std::size_t self, unsigned phase,
                   Bytes sum, Step after);

/// One block for each member of a list, in the order of the list.
using Blocks = std::vector<Bytes>;

/// All members of a list combine their blocks in a ring, each to the end of its own block: member i gets the sum of
/// block i + `shift`.
Step combine_ring(Schedule& schedule, std::span<const Member> list, std::size_t self, unsigned phase,
                  const Blocks& blocks, std::size_t shift, Step after);
/// All members of a list get all blocks in a ring; at first member i has block i + `shift`.
Step gather_ring(Schedule& schedule, std::span<const Member> list, std::size_t self, unsigned phase,
                 const Blocks& blocks, std::size_t shift, Step after);
/// The same for short blocks (Bruck); member i has block i.
Step gather_doubling(Schedule& schedule, std::span<const Member> list, std::size_t self, unsigned phase,
                     ConstBytes own, const Blocks& blocks, Step after);

}  // namespace cluster::collective
