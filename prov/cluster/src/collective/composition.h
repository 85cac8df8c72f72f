// Chooses the exchanges of an operation according to its length and the nodes of the members. Short
// operations use trees and doubling, which need few rounds. Long operations use pipelines and rings, which
// send few bytes. In scatter, gather and alltoall, each block goes directly to its receiver, whatever its
// length. In a tree, one member of each node, the leader, exchanges messages with the leaders of other nodes.
// The other members exchange messages only inside their node.
#pragma once

#include <cstddef>

#include "collective/schedule.h"
#include "collective/team_layout.h"

namespace cluster::collective {

enum class Kind : std::uint8_t {
  barrier,
  broadcast,
  alltoall,
  allreduce,
  allgather,
  reduce_scatter,
  reduce,
  scatter,
  gather,
};

/// The arguments of one member. A block is the data that one member contributes or receives. In a broadcast,
/// `target` is the buffer of every member.
struct Arguments {
  Kind kind = Kind::barrier;
  Reduction reduction{};
  ConstBytes source{};  ///< one block for each member in alltoall, reduce_scatter, and at the root of scatter
  Bytes target{};       ///< one block for each member in alltoall, allgather, and at the root of gather
  Member root = 0;
  bool multicast = false;  ///< true if the members can use multicast; the same on all members
  bool often = false;      ///< true if the team broadcasts often; the same on all members
};

/// From this length on, operations use exchanges that save bytes instead of rounds. In an allgather, a
/// quarter of this length is enough, because the length is that of one block.
inline constexpr std::size_t kLong = 32 * 1024;
/// The shortest piece of a pipeline.
inline constexpr std::size_t kPieceMin = 32 * 1024;

/// If a team has at most kFewNodes nodes, but not two, an allreduce of at most kShort bytes goes through one
/// member. The limits are low because all data passes the network port of that member's node.
inline constexpr std::size_t kFewNodes = 8;
inline constexpr std::size_t kShort = 256;

/// A broadcast uses multicast if it is at least kMulticastMin bytes long and the team has at least
/// kMulticastNodes nodes.
inline constexpr std::size_t kMulticastNodes = 3;
inline constexpr std::size_t kMulticastMin = 4 * 1024;
/// In a team that broadcasts often and has at least this many nodes, a broadcast of any length uses
/// multicast. Other teams use no multicast for broadcasts below kMulticastMin, because opening a group takes
/// longer than a few short broadcasts. Barriers and short allreduces gain nothing from multicast: without
/// multicast, the message with the result also acknowledges the receiving member's own message. A multicast
/// would not acknowledge that message.
inline constexpr std::size_t kMulticastNodesShort = 4;
/// The shortest piece of a multicast.
inline constexpr std::size_t kMulticastPiece = 64 * 1024;
/// From this length on, an allreduce sends its sums by multicast. With multicast, each node sends
/// the data once, and the inner nodes of the chain receive it twice. In a ring, each node sends and receives
/// nearly twice its length.
inline constexpr std::size_t kMulticastSums = 32 * 1024;

/// Returns true if the operation uses multicast. All members must get the same result from this function.
bool spreads(const TeamLayout& layout, const Arguments& arguments);

/// Returns the schedule of this member, layout.self(), for the operation.
Schedule compose(const TeamLayout& layout, const Arguments& arguments);

}  // namespace cluster::collective
