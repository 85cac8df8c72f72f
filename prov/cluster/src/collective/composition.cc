#include "collective/composition.h"

#include <algorithm>

#include "collective/algorithms.h"

namespace cluster::collective {
namespace {

/// Exchanges of one operation: their messages have other numbers.
enum Phase : unsigned { kUp, kAcross, kAround, kDown };

/// Rounds of an alltoall that are under way at once: enough to fill a link, too few to flood a receiver.
constexpr std::size_t kRoundsAtOnce = 8;

bool leads(const TeamLayout& layout) { return layout.leaders()[layout.node()] == layout.self(); }

/// The tree of this node alone.
Tree tree_of_node(const TeamLayout& layout) {
  return binomial_tree(layout.neighbors(), layout.position_in_node(), 0);
}

/// `count` equal blocks of a buffer.
Blocks blocks_of(Bytes buffer, const MemberList& order) {
  const std::size_t size = buffer.size() / order.size();
  Blocks blocks;
  for (const Member member : order) blocks.push_back(buffer.subspan(member * size, size));
  return blocks;
}

/// Parts of a buffer that are as equal as whole elements permit.
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

/// Few nodes meet at one of them: two messages one after the other instead of one for each doubling, each answered by one
/// that takes its acknowledgement along, and a member waits once. Two need none to meet at: each sends when it is there.
bool meets_at_one(const TeamLayout& layout, std::size_t length) {
  const std::size_t nodes = layout.leaders().size();
  return nodes != 2 && nodes <= kFewNodes && length <= kShort;
}

constexpr Member kMeeting = 0;

void barrier(Schedule& schedule, const TeamLayout& layout) {
  if (meets_at_one(layout, 0)) {
    const Tree tree = layout.tree(kMeeting, star_tree);
    const Pieces nothing(0, kPieceMin);
    const std::vector<Step> arrived = combine_up(schedule, tree, kUp, {}, {}, nothing, kStart);
    send_down(schedule, tree, kDown, {}, nothing, arrived);
    return;
  }
  const Tree node = tree_of_node(layout);
  const Pieces nothing(0, kPieceMin);
  const std::vector<Step> arrived = combine_up(schedule, node, kUp, {}, {}, nothing, kStart);
  Step met = arrived.front();
  if (leads(layout)) met = meet(schedule, layout.leaders(), layout.node(), kAcross, met);
  send_down(schedule, node, kDown, {}, nothing, {&met, 1});
}

void broadcast(Schedule& schedule, const TeamLayout& layout, const Arguments& arguments) {
  if (spreads(layout, arguments)) {
    const Pieces pieces(arguments.target.size(), kMulticastPiece);
    send_to_nodes(schedule, layout, arguments.root, kDown, kAcross, arguments.target, pieces, {&kStart, 1});
    return;
  }
  const bool in_pieces = arguments.target.size() >= kLong;
  const Tree tree = layout.tree(arguments.root, in_pieces ? chain_tree : binomial_tree);
  const Step start = kStart;
  // Where no member hands it on, the message is one.
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
    send_to_nodes(schedule, layout, kMeeting, kDown, kAcross, arguments.target, pieces, sums);
    return;
  }
  const Tree node = tree_of_node(layout);
  const Pieces pieces(arguments.source.size(), kPieceMin);
  const Bytes sum = arguments.target;
  const std::vector<Step> arrived = combine_up(schedule, node, kUp, arguments.source, sum, pieces, kStart);
  Step combined = schedule.join(arrived);
  const MemberList& leaders = layout.leaders();
  if (leads(layout) && sum.size() < kLong) {
    combined = combine_among(schedule, leaders, layout.node(), kAcross, sum, combined);
  } else if (leads(layout)) {
    const Blocks parts = parts_of(sum, leaders.size(), size_of(schedule.reduction().type));
    combined = combine_ring(schedule, leaders, layout.node(), kAcross, parts, 1, combined);
    combined = gather_ring(schedule, leaders, layout.node(), kAround, parts, 1, combined);
  }
  send_down(schedule, node, kDown, sum, pieces, {&combined, 1});
}

void allgather(Schedule& schedule, const TeamLayout& layout, const Arguments& arguments) {
  const MemberList& order = layout.by_node();
  const Blocks blocks = blocks_of(arguments.target, order);
  const std::size_t self = layout.position_by_node();
  if (arguments.source.size() >= kLong / 4) {
    const Step own = schedule.copy(blocks[self], arguments.source, {});
    gather_ring(schedule, order, self, kAround, blocks, 0, own);
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

/// In each round every member sends to one and receives from one, so that no receiver is flooded.
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
    const Step combined = combine_ring(schedule, layout.by_node(), self, kAround, blocks, 0, copied);
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
    case Kind::barrier: barrier(schedule, layout); break;
    case Kind::broadcast: broadcast(schedule, layout, arguments); break;
    case Kind::alltoall: alltoall(schedule, layout, arguments); break;
    case Kind::allreduce: allreduce(schedule, layout, arguments); break;
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
