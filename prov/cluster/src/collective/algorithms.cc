#include "collective/algorithms.h"

#include <algorithm>
#include <array>
#include <bit>

namespace cluster::collective {
namespace {

/// A piece ends where an element ends, whatever its type is.
constexpr std::size_t kPieceUnit = 64;

/// The step for one piece out of one for each, or one for all.
Step of_piece(std::span<const Step> steps, std::size_t index) {
  return steps.size() == 1 ? steps[0] : steps[index];
}

/// Two buffers that take turns: one is received into while the other is combined.
class Alternating {
 public:
  Alternating(Schedule& schedule, std::size_t size) : bytes_(schedule.scratch(2 * size)), size_(size) {}
  Bytes buffer(std::size_t turn, std::size_t length) const {
    return bytes_.subspan(turn % 2 * size_, length);
  }
  Step& used_by(std::size_t turn) { return used_by_[turn % 2]; }

 private:
  Bytes bytes_;
  std::size_t size_;
  std::array<Step, 2> used_by_{kStart, kStart};
};

}  // namespace

Pieces::Pieces(std::size_t length, std::size_t shortest) {
  const std::size_t needed = (length + kPhaseNumbers - 1) / kPhaseNumbers;
  size_ = std::max(shortest, (needed + kPieceUnit - 1) / kPieceUnit * kPieceUnit);
  count_ = length == 0 ? 1 : (length + size_ - 1) / size_;
}

Step send_down(Schedule& schedule, const Tree& tree, unsigned phase, Bytes buffer, const Pieces& pieces,
               std::span<const Step> after) {
  std::vector<Step> done;
  for (std::size_t i = 0; i < pieces.count(); ++i) {
    const Bytes piece = pieces.of(buffer, i);
    const unsigned number = phase * kPhaseNumbers + static_cast<unsigned>(i);
    Step here = of_piece(after, i);
    if (tree.parent != kNoMember) here = schedule.receive(tree.parent, number, piece, {here});
    if (tree.parent != kNoMember || tree.children.empty()) done.push_back(here);
    for (const Member child : tree.children) done.push_back(schedule.send(child, number, piece, {here}));
  }
  return schedule.join(done);
}

Step send_to_nodes(Schedule& schedule, const TeamLayout& layout, Member root, unsigned phase,
                   unsigned crossing, Bytes buffer, const Pieces& pieces, std::span<const Step> after) {
  const bool here = layout.node_of(root) == layout.node();
  const bool leads = layout.leaders()[layout.node()] == layout.self();
  const Member spreader = layout.leaders()[layout.node_of(root)];
  const Tree tree = layout.tree_here(root);
  std::vector<Step> done;
  for (std::size_t i = 0; i < pieces.count(); ++i) {
    const Bytes piece = pieces.of(buffer, i);
    const auto number = static_cast<unsigned>(i);
    Step arrived = of_piece(after, i);
    if (tree.parent != kNoMember) {
      arrived = schedule.receive(tree.parent, phase * kPhaseNumbers + number, piece, {arrived});
    } else if (!here) {
      arrived = schedule.receive(spreader, crossing * kPhaseNumbers + number, piece, {arrived});
    }
    done.push_back(arrived);
    // Before the node's own members: the network is slower.
    if (here && leads) done.back() = schedule.spread(crossing * kPhaseNumbers + number, piece, {arrived});
    for (const Member child : tree.children)
      done.push_back(schedule.send(child, phase * kPhaseNumbers + number, piece, {arrived}));
  }
  return schedule.join(done);
}

std::vector<Step> combine_up(Schedule& schedule, const Tree& tree, unsigned phase, ConstBytes own, Bytes sum,
                             const Pieces& pieces, Step after) {
  const bool combines = !tree.children.empty() || tree.parent == kNoMember;
  std::vector<Alternating> arrivals;
  for (std::size_t i = 0; i < tree.children.size(); ++i)
    arrivals.emplace_back(schedule, std::min(pieces.size(), own.size()));
  std::vector<Step> done;
  for (std::size_t i = 0; i < pieces.count(); ++i) {
    const unsigned number = phase * kPhaseNumbers + static_cast<unsigned>(i);
    const ConstBytes mine = pieces.of(own, i);
    const Bytes piece = combines ? pieces.of(sum, i) : Bytes{};
    Step here = combines && mine.data() != piece.data() ? schedule.copy(piece, mine, {after}) : after;
    // The smallest subtree first: it is the first to be complete.
    for (std::size_t child = tree.children.size(); child-- > 0;) {
      const Bytes arrived = arrivals[child].buffer(i, piece.size());
      const Step receive =
          schedule.receive(tree.children[child], number, arrived, {after, arrivals[child].used_by(i)});
      here = schedule.combine(piece, arrived, {here, receive});
      arrivals[child].used_by(i) = here;
    }
    if (tree.parent != kNoMember)
      here = schedule.send(tree.parent, number, combines ? ConstBytes(piece) : mine, {here});
    done.push_back(here);
  }
  return done;
}

Step meet(Schedule& schedule, std::span<const Member> list, std::size_t self, unsigned phase, Step after) {
  const std::size_t count = list.size();
  unsigned number = phase * kPhaseNumbers;
  for (std::size_t distance = 1; distance < count; distance *= 2, ++number) {
    const Step send = schedule.send(list[(self + distance) % count], number, {}, {after});
    const Step receive = schedule.receive(list[(self + count - distance) % count], number, {}, {after});
    after = schedule.join({send, receive});
  }
  return after;
}

/// Members beyond the largest power of two give what they have to a neighbor first and get the result at last.
Step combine_among(Schedule& schedule, std::span<const Member> list, std::size_t self, unsigned phase,
                   Bytes sum, Step after) {
  const std::size_t count = list.size();
  const std::size_t power = std::bit_floor(count);
  const std::size_t pairs = count - power;  // of the first members
  const unsigned first = phase * kPhaseNumbers;
  constexpr unsigned kLast = kPhaseNumbers - 1;
  const bool paired = self < 2 * pairs;
  if (paired && self % 2 == 0) {
    const Step sent = schedule.send(list[self + 1], first, sum, {after});
    return schedule.receive(list[self + 1], first + kLast, sum, {sent});
  }
  Alternating arrivals(schedule, sum.size());
  std::size_t turn = 0;
  const auto combine_with = [&](Member other, unsigned number, Step sent) {
    const Bytes arrived = arrivals.buffer(turn, sum.size());
    const Step receive = schedule.receive(other, number, arrived, {arrivals.used_by(turn), after});
    // Both sides combine, so they wait until what they had has left.
    const Step combined = schedule.combine(sum, arrived, {receive, sent});
    arrivals.used_by(turn++) = combined;
    return combined;
  };
  if (paired) after = combine_with(list[self - 1], first, after);
  const std::size_t rank = paired ? self / 2 : self - pairs;
  const auto at = [&](std::size_t other) { return list[other < pairs ? 2 * other + 1 : other + pairs]; };
  unsigned number = first + 1;
  for (std::size_t bit = 1; bit < power; bit *= 2, ++number) {
    const Member partner = at(rank ^ bit);
    after = combine_with(partner, number, schedule.send(partner, number, sum, {after}));
  }
  return paired ? schedule.send(list[self - 1], first + kLast, sum, {after}) : after;
}

Step combine_ring(Schedule& schedule, std::span<const Member> list, std::size_t self, unsigned phase,
                  const Blocks& blocks, std::size_t shift, Step after) {
  const std::size_t count = list.size();
  const Member next = list[(self + 1) % count];
  const Member previous = list[(self + count - 1) % count];
  std::size_t longest = 0;
  for (const Bytes& block : blocks) longest = std::max(longest, block.size());
  Alternating arrivals(schedule, longest);
  std::vector<Step> done{after};
  Step combined = after;
  for (std::size_t round = 0; round + 1 < count; ++round) {
    const unsigned number = phase * kPhaseNumbers + static_cast<unsigned>(round % kPhaseNumbers);
    const Bytes leaving = blocks[(self + shift + 2 * count - 1 - round) % count];
    const Bytes staying = blocks[(self + shift + 2 * count - 2 - round) % count];
    done.push_back(schedule.send(next, number, leaving, {combined}));
    const Bytes arrived = arrivals.buffer(round, staying.size());
    const Step receive = schedule.receive(previous, number, arrived, {after, arrivals.used_by(round)});
    combined = schedule.combine(staying, arrived, {receive, after});
    arrivals.used_by(round) = combined;
  }
  done.push_back(combined);
  return schedule.join(done);
}

Step gather_ring(Schedule& schedule, std::span<const Member> list, std::size_t self, unsigned phase,
                 const Blocks& blocks, std::size_t shift, Step after) {
  const std::size_t count = list.size();
  const Member next = list[(self + 1) % count];
  const Member previous = list[(self + count - 1) % count];
  std::vector<Step> done{after};
  Step here = after;
  for (std::size_t round = 0; round + 1 < count; ++round) {
    const unsigned number = phase * kPhaseNumbers + static_cast<unsigned>(round % kPhaseNumbers);
    const Bytes leaving = blocks[(self + shift + count - round) % count];
    const Bytes arriving = blocks[(self + shift + 2 * count - 1 - round) % count];
    done.push_back(schedule.send(next, number, leaving, {here}));
    here = schedule.receive(previous, number, arriving, {after});
  }
  done.push_back(here);
  return schedule.join(done);
}

Step gather_doubling(Schedule& schedule, std::span<const Member> list, std::size_t self, unsigned phase,
                     ConstBytes own, const Blocks& blocks, Step after) {
  const std::size_t count = list.size();
  const std::size_t size = own.size();
  // From the own block on, in the order of the list.
  const Bytes rotated = schedule.scratch(size * count);
  Step here = schedule.copy(rotated.first(size), own, {after});
  std::vector<Step> done;
  unsigned number = phase * kPhaseNumbers;
  for (std::size_t have = 1; have < count; have *= 2, ++number) {
    const std::size_t more = std::min(have, count - have);
    done.push_back(
        schedule.send(list[(self + count - have) % count], number, rotated.first(more * size), {here}));
    const Step receive = schedule.receive(list[(self + have) % count], number,
                                          rotated.subspan(have * size, more * size), {after});
    here = schedule.join({here, receive});
  }
  for (std::size_t i = 0; i < count; ++i)
    done.push_back(schedule.copy(blocks[(self + i) % count], rotated.subspan(i * size, size), {here}));
  return schedule.join(done);
}

}  // namespace cluster::collective
