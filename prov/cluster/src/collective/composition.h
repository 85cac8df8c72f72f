// Chooses the exchanges of an operation by its length and by the nodes of the members. Short operations take
// few rounds: trees and doubling. Long operations move few bytes: pipelines and rings. Inside a node the
// members combine first, and one of them speaks for the node.
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

/// The arguments of one member. A block is what one member contributes or gets. In a broadcast `target` is
/// the buffer of every member.
struct Arguments {
  Kind kind = Kind::barrier;
  Reduction reduction{};
  ConstBytes source{};  ///< a block for each member in alltoall, reduce_scatter, and scatter at the root
  Bytes target{};       ///< a block for each member in alltoall, allgather, and gather at the root
  Member root = 0;
  bool multicast = false;  ///< true if multicast reaches the nodes; the same at all members
  bool often = false;      ///< true if the team broadcasts often; the same at all members
};

/// From this length on, operations save bytes rather than rounds.
inline constexpr std::size_t kLong = 32 * 1024;
/// The shortest piece of a pipeline.
inline constexpr std::size_t kPieceMin = 32 * 1024;

/// If an operation is at most kShort long, up to this many nodes exchange it through one of them. The port of
/// that node passes the bytes of all.
inline constexpr std::size_t kFewNodes = 8;
inline constexpr std::size_t kShort = 256;

/// A broadcast goes by multicast if it is at least kMulticastMin long and goes to at least kMulticastNodes
/// nodes.
inline constexpr std::size_t kMulticastNodes = 3;
inline constexpr std::size_t kMulticastMin = 4 * 1024;
/// In a team that broadcasts often, a broadcast of any length goes by multicast to at least this many nodes.
/// Opening a group takes longer than a few short broadcasts. Barriers and short allreduces gain nothing from
/// multicast: their second message acknowledges the first anyway.
inline constexpr std::size_t kMulticastNodesShort = 4;
/// The shortest piece of a multicast.
inline constexpr std::size_t kMulticastPiece = 64 * 1024;
/// The sums of an allreduce go by multicast from this length on. With multicast they pass the port of each
/// node once in each direction; in a ring they pass it nearly twice.
inline constexpr std::size_t kMulticastSums = 32 * 1024;

/// Returns true if the operation uses multicast.
bool spreads(const TeamLayout& layout, const Arguments& arguments);

/// Returns the schedule of layout.self().
Schedule compose(const TeamLayout& layout, const Arguments& arguments);

}  // namespace cluster::collective
