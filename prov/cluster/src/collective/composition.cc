#include "collective/composition.h"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <vector>

namespace cluster::collective {
namespace {

// --- Exchanges: the building blocks of operations. Each function adds the actions of this member in one
// exchange to a schedule. The actions begin after a given step. The function returns the step that is done
// when all these actions are done. `phase` distinguishes the messages of several exchanges in one
// schedule. ---

/// How many message numbers one exchange can use.
constexpr unsigned kPhaseNumbers = 256;
/// The length of each piece, except the last, is a multiple of this. Therefore no element is split, whatever
/// its type.
constexpr std::size_t kPieceUnit = 64;

/// Divides a long buffer into pieces. A member forwards one piece while it receives the next.
class Pieces {
 public:
  /// All pieces except the last have the same length of at least `shortest` bytes. There are at most
  /// kPhaseNumbers pieces.
  Pieces(std::size_t length, std::size_t shortest) {
    const std::size_t needed = (length + kPhaseNumbers - 1) / kPhaseNumbers;
    size_ = std::max(shortest, (needed + kPieceUnit - 1) / kPieceUnit * kPieceUnit);
    count_ = length == 0 ? 1 : (length + size_ - 1) / size_;
  }
  std::size_t count() const { return count_; }
  std::size_t size() const { return size_; }
  template <typename Span>
  Span of(Span whole, std::size_t index) const {
    const std::size_t begin = index * size_;
    return whole.subspan(begin, std::min(size_, whole.size() - begin));
  }

 private:
  std::size_t size_;
  std::size_t count_;
};

/// Returns the step of the piece `index`. `steps` contains one step for each piece, or a single step for all
/// pieces.
Step of_piece(std::span<const Step> steps, std::size_t index) {
  return steps.size() == 1 ? steps[0] : steps[index];
}

/// Two buffers used in turn: this member receives into one while it combines the contents of the other.
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

/// One block for each member of a list, in the order of the list.
using Blocks = std::vector<Bytes>;

/// A multicast from the leader of the root's node (the spreader) to the leaders of the other nodes.
struct Multicast {
  Member spreader;
  unsigned phase;
  bool arrives;  ///< true if the root is on another node, so that this node receives the multicast
  bool spreads;  ///< true if this member is the spreader
};

/// Sends the root's `buffer` to all members of a tree. With a multicast, the tree contains only the members
/// of this node. `after` contains one step for each piece, or a single step for all pieces. No action writes
/// into a piece before the step of that piece.
Step send_down(Schedule& schedule, const Tree& tree, unsigned phase, Bytes buffer, const Pieces& pieces,
               std::span<const Step> after, const Multicast* multicast = nullptr) {
  std::vector<Step> done;
  for (std::size_t i = 0; i < pieces.count(); ++i) {
    const Bytes piece = pieces.of(buffer, i);
    const unsigned number = phase * kPhaseNumbers + static_cast<unsigned>(i);
    const unsigned crossing =
        multicast != nullptr ? multicast->phase * kPhaseNumbers + static_cast<unsigned>(i) : 0;
    Step here = of_piece(after, i);
    if (tree.parent != kNoMember) {
      here = schedule.receive(tree.parent, number, piece, {here});
    } else if (multicast != nullptr && multicast->arrives) {
      here = schedule.receive(multicast->spreader, crossing, piece, {here});
    }
    if (multicast != nullptr && multicast->spreads) {
      // The multicast comes before the sends inside the node, because the network is slower.
      done.push_back(schedule.spread(crossing, piece, {here}));
    } else if (multicast != nullptr || tree.parent != kNoMember || tree.children.empty()) {
      done.push_back(here);
    }
    for (const Member child : tree.children) done.push_back(schedule.send(child, number, piece, {here}));
  }
  return schedule.join(done);
}

/// Combines the contributions of all members of a tree at its root. `own` is the contribution of this member.
/// In `sum`, this member combines its own contribution with those of its children. `sum` may be the same
/// memory as `own`. Only the root and members with children use `sum`. Returns one step for each piece.
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
    // Combines the child with the smallest subtree first, because its sum arrives first.
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

/// Combines `sum` of all members in a list by recursive doubling, which is fast for short buffers. Recursive
/// doubling needs a number of members that is a power of two. Therefore each surplus member first sends its
/// contribution to a neighbor in the list, and receives the result at the end.
Step combine_among(Schedule& schedule, std::span<const Member> list, std::size_t self, unsigned phase,
                   Bytes sum, Step after) {
  const std::size_t count = list.size();
  const std::size_t power = std::bit_floor(count);
  // The first 2 * pairs members form pairs, each with one surplus member.
  const std::size_t pairs = count - power;
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
    // This member combines into the `sum` that it sends, so it first waits until the old value is sent.
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

/// Sends the blocks of all members in a list around a ring. The i-th member first sends the block i +
/// `shift`. In each later round it sends the block that it received in the round before. If `combines` is
/// true, the member first combines each received block with its own block of the same index. At the end it
/// has the block i + `shift` + 1 combined from all members. If `combines` is false, the member stores the
/// received blocks, and at the end has all blocks.
///
/// After kPhaseNumbers rounds, the message numbers begin again. Then a message matches the right receive only
/// if both sides begin the messages of one number in the order of the rounds. The receives wait for the same
/// step, so they begin in this order. Each send waits for the send of the same number before it.
Step around_ring(Schedule& schedule, std::span<const Member> list, std::size_t self, unsigned phase,
                 const Blocks& blocks, std::size_t shift, bool combines, Step after) {
  const std::size_t count = list.size();
  const Member next = list[(self + 1) % count];
  const Member previous = list[(self + count - 1) % count];
  const auto longest = std::ranges::max_element(blocks, {}, &Bytes::size);
  Alternating arrivals(schedule, combines ? longest->size() : 0);
  std::vector<Step> done{after};
  Step here = after;
  for (std::size_t round = 0; round + 1 < count; ++round) {
    const unsigned number = phase * kPhaseNumbers + static_cast<unsigned>(round % kPhaseNumbers);
    const Bytes leaving = blocks[(self + shift + 2 * count - round) % count];
    const Bytes own = blocks[(self + shift + 2 * count - 1 - round) % count];
    const Step same_number = round < kPhaseNumbers ? kStart : done[1 + round - kPhaseNumbers];
    done.push_back(schedule.send(next, number, leaving, {here, same_number}));
    if (!combines) {
      here = schedule.receive(previous, number, own, {after});
      continue;
    }
    const Bytes arrived = arrivals.buffer(round, own.size());
    const Step receive = schedule.receive(previous, number, arrived, {after, arrivals.used_by(round)});
    here = schedule.combine(own, arrived, {receive, after});
    arrivals.used_by(round) = here;
  }
  done.push_back(here);
  return schedule.join(done);
}

/// Sends the blocks of all members in a list to all of them by Bruck's algorithm, which is fast for short
/// blocks. `own` is the block of this member.
Step gather_doubling(Schedule& schedule, std::span<const Member> list, std::size_t self, unsigned phase,
                     ConstBytes own, const Blocks& blocks, Step after) {
  const std::size_t count = list.size();
  const std::size_t size = own.size();
  // The blocks in the order of the list, starting with the block of this member.
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

// --- Operations ---

/// The exchanges of one operation. Each uses its own message numbers.
enum Phase : unsigned { kUp, kAcross, kAround, kDown };

/// The number of concurrent rounds of an alltoall: enough to use the whole bandwidth of a link, but too few
/// to overrun a receiver.
constexpr std::size_t kRoundsAtOnce = 8;

/// Sends the root's buffer to all members. One multicast sends a piece to all other nodes. Inside each node,
/// a tree distributes the piece.
void send_to_nodes(Schedule& schedule, const TeamLayout& layout, Member root, Bytes buffer,
                   const Pieces& pieces, std::span<const Step> after) {
  const bool here = layout.node_of(root) == layout.node();
  const Multicast multicast{layout.leaders()[layout.node_of(root)], kAcross, !here, here && layout.leads()};
  send_down(schedule, layout.tree_here(root), kDown, buffer, pieces, after, &multicast);
}

/// Divides a buffer into equal blocks, one for each member. Returns them in the given order of members.
Blocks blocks_of(Bytes buffer, const MemberList& order) {
  const std::size_t size = buffer.size() / order.size();
  Blocks blocks;
  for (const Member member : order) blocks.push_back(buffer.subspan(member * size, size));
  return blocks;
}

/// Divides a buffer into `count` parts of nearly equal length. No element is split.
Blocks parts_of(Bytes buffer, std::size_t count, std::size_t element) {
  const std::size_t elements = buffer.size() / element;
  Blocks parts;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = elements * i / count * element;
    const std::size_t end = elements * (i + 1) / count * element;
    parts.push_back(buffer.subspan(begin, end - begin));
  }
  return parts;
}

/// Returns true if the leaders of all nodes send to the member kMeeting, which sends the result back. With
/// kMeeting, there are two messages one after the other. The second message also acknowledges the first, and
/// each member waits only once. With recursive doubling, there is one message for each doubling of the number
/// of nodes. With two nodes kMeeting gains nothing, because each node can send to the other node as soon as
/// it is ready.
bool meets_at_one(const TeamLayout& layout, std::size_t length) {
  const std::size_t nodes = layout.leaders().size();
  return nodes != 2 && nodes <= kFewNodes && length <= kShort;
}

constexpr Member kMeeting = 0;

void broadcast(Schedule& schedule, const TeamLayout& layout, const Arguments& arguments) {
  if (spreads(layout, arguments)) {
    const Pieces pieces(arguments.target.size(), kMulticastPiece);
    send_to_nodes(schedule, layout, arguments.root, arguments.target, pieces, {&kStart, 1});
    return;
  }
  const bool in_pieces = arguments.target.size() >= kLong;
  const Tree tree = layout.tree(arguments.root, in_pieces ? chain_tree : binomial_tree);
  const Step start = kStart;
  // With two members, no member forwards a piece, so one piece is enough.
  const std::size_t shortest = layout.size() == 2 ? std::max(kPieceMin, arguments.target.size()) : kPieceMin;
  send_down(schedule, tree, kDown, arguments.target, Pieces(arguments.target.size(), shortest), {&start, 1});
}

void reduce(Schedule& schedule, const TeamLayout& layout, const Arguments& arguments) {
  const Tree tree =
      layout.tree(arguments.root, arguments.source.size() >= kLong ? chain_tree : binomial_tree);
  const Pieces pieces(arguments.source.size(), kPieceMin);
  Bytes sum = arguments.target;
  if (tree.parent != kNoMember)
    sum = tree.children.empty() ? Bytes{} : schedule.scratch(arguments.source.size());
  combine_up(schedule, tree, kUp, arguments.source, sum, pieces, kStart);
}

/// With an empty buffer, this is a barrier.
void allreduce(Schedule& schedule, const TeamLayout& layout, const Arguments& arguments) {
  if (meets_at_one(layout, arguments.source.size())) {
    const Tree tree = layout.tree(kMeeting, star_tree);
    const Pieces whole(arguments.source.size(), kPieceMin);
    const std::vector<Step> arrived =
        combine_up(schedule, tree, kUp, arguments.source, arguments.target, whole, kStart);
    send_down(schedule, tree, kDown, arguments.target, whole, arrived);
    return;
  }
  if (spreads(layout, arguments)) {
    const Tree chain = layout.tree(kMeeting, chain_tree);
    const Pieces pieces(arguments.source.size(), kMulticastPiece);
    const std::vector<Step> sums =
        combine_up(schedule, chain, kUp, arguments.source, arguments.target, pieces, kStart);
    send_to_nodes(schedule, layout, kMeeting, arguments.target, pieces, sums);
    return;
  }
  const Tree node = layout.tree_here(layout.leader());
  const Pieces pieces(arguments.source.size(), kPieceMin);
  const Bytes sum = arguments.target;
  const std::vector<Step> arrived = combine_up(schedule, node, kUp, arguments.source, sum, pieces, kStart);
  Step combined = schedule.join(arrived);
  const MemberList& leaders = layout.leaders();
  if (layout.leads() && sum.size() < kLong) {
    combined = combine_among(schedule, leaders, layout.node(), kAcross, sum, combined);
  } else if (layout.leads()) {
    const Blocks parts = parts_of(sum, leaders.size(), size_of(schedule.reduction().type));
    combined = around_ring(schedule, leaders, layout.node(), kAcross, parts, 0, true, combined);
    combined = around_ring(schedule, leaders, layout.node(), kAround, parts, 1, false, combined);
  }
  send_down(schedule, node, kDown, sum, pieces, {&combined, 1});
}

void allgather(Schedule& schedule, const TeamLayout& layout, const Arguments& arguments) {
  const MemberList& order = layout.by_node();
  const Blocks blocks = blocks_of(arguments.target, order);
  const std::size_t self = layout.position_by_node();
  if (arguments.source.size() >= kLong / 4) {
    const Step own = schedule.copy(blocks[self], arguments.source, {});
    around_ring(schedule, order, self, kAround, blocks, 0, false, own);
  } else {
    gather_doubling(schedule, order, self, kAround, arguments.source, blocks, kStart);
  }
}

/// The root sends each member its block.
void scatter(Schedule& schedule, const TeamLayout& layout, ConstBytes blocks, Bytes own, Member root,
             Step after) {
  if (layout.self() != root) {
    schedule.receive(root, kDown * kPhaseNumbers, own, {after});
    return;
  }
  for (Member member = 0; member < layout.size(); ++member) {
    const ConstBytes block = blocks.subspan(member * own.size(), own.size());
    if (member == root) {
      schedule.copy(own, block, {after});
    } else {
      schedule.send(member, kDown * kPhaseNumbers, block, {after});
    }
  }
}

void gather(Schedule& schedule, const TeamLayout& layout, const Arguments& arguments) {
  const ConstBytes own = arguments.source;
  if (layout.self() != arguments.root) {
    schedule.send(arguments.root, kUp * kPhaseNumbers, own, {});
    return;
  }
  for (Member member = 0; member < layout.size(); ++member) {
    const Bytes block = arguments.target.subspan(member * own.size(), own.size());
    if (member == layout.self()) {
      schedule.copy(block, own, {});
    } else {
      schedule.receive(member, kUp * kPhaseNumbers, block, {});
    }
  }
}

/// In each round, every member sends to one member and receives from one member, and at most kRoundsAtOnce
/// rounds run at once. Therefore no receiver is overrun.
void alltoall(Schedule& schedule, const TeamLayout& layout, const Arguments& arguments) {
  const std::size_t count = layout.size();
  const std::size_t size = arguments.target.size() / count;
  const Member self = layout.self();
  schedule.copy(arguments.target.subspan(self * size, size), arguments.source.subspan(self * size, size), {});
  std::vector<Step> rounds;
  for (std::size_t round = 1; round < count; ++round) {
    const auto to = static_cast<Member>((self + round) % count);
    const auto from = static_cast<Member>((self + count - round) % count);
    const Step after = rounds.size() < kRoundsAtOnce ? kStart : rounds[rounds.size() - kRoundsAtOnce];
    const Step receive =
        schedule.receive(from, kAround * kPhaseNumbers, arguments.target.subspan(from * size, size), {after});
    const Step send =
        schedule.send(to, kAround * kPhaseNumbers, arguments.source.subspan(to * size, size), {after});
    rounds.push_back(schedule.join({receive, send}));
  }
}

void reduce_scatter(Schedule& schedule, const TeamLayout& layout, const Arguments& arguments) {
  const Bytes sum = schedule.scratch(arguments.source.size());
  if (arguments.source.size() >= kLong) {
    const Step copied = schedule.copy(sum, arguments.source, {});
    const Blocks blocks = blocks_of(sum, layout.by_node());
    const std::size_t self = layout.position_by_node();
    const Step combined =
        around_ring(schedule, layout.by_node(), self, kAround, blocks, blocks.size() - 1, true, copied);
    schedule.copy(arguments.target, blocks[self], {combined});
    return;
  }
  constexpr Member kRoot = 0;
  const Pieces pieces(arguments.source.size(), kPieceMin);
  const Tree tree = layout.tree(kRoot, binomial_tree);
  const std::vector<Step> combined = combine_up(schedule, tree, kUp, arguments.source, sum, pieces, kStart);
  scatter(schedule, layout, sum, arguments.target, kRoot,
          layout.self() == kRoot ? schedule.join(combined) : kStart);
}

}  // namespace

bool spreads(const TeamLayout& layout, const Arguments& arguments) {
  const std::size_t nodes = layout.leaders().size();
  if (!arguments.multicast || nodes < kMulticastNodes) return false;
  if (arguments.kind == Kind::allreduce) return arguments.target.size() >= kMulticastSums;
  if (arguments.kind != Kind::broadcast) return false;
  return arguments.target.size() >= kMulticastMin || (arguments.often && nodes >= kMulticastNodesShort);
}

Schedule compose(const TeamLayout& layout, const Arguments& arguments) {
  Schedule schedule(arguments.reduction);
  switch (arguments.kind) {
    case Kind::barrier:
    case Kind::allreduce: allreduce(schedule, layout, arguments); break;
    case Kind::broadcast: broadcast(schedule, layout, arguments); break;
    case Kind::alltoall: alltoall(schedule, layout, arguments); break;
    case Kind::allgather: allgather(schedule, layout, arguments); break;
    case Kind::reduce_scatter: reduce_scatter(schedule, layout, arguments); break;
    case Kind::reduce: reduce(schedule, layout, arguments); break;
    case Kind::scatter:
      scatter(schedule, layout, arguments.source, arguments.target, arguments.root, kStart);
      break;
    case Kind::gather: gather(schedule, layout, arguments); break;
  }
  return schedule;
}

}  // namespace cluster::collective
