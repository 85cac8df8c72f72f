// Which exchanges an operation consists of, by its length and by where the members are. Short operations take few rounds, long ones
// move few bytes: trees and doubling for the former, pipelines and rings for the latter. Inside a node the members combine first,
// and one of them speaks for the node.
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

/// What one member asks for. A block is what one member contributes or gets.
struct Arguments {
  Kind kind = Kind::barrier;
  Reduction reduction{};
  ConstBytes source{};  ///< alltoall, reduce_scatter, and scatter at the root: a block for each member
  Bytes target{};       ///< broadcast: the buffer; alltoall, allgather, and gather at the root: likewise
  Member root = 0;
  bool multicast = false;  ///< multicast reaches the nodes; the same at all members
  bool often = false;      ///< the team broadcasts often; the same at all members
};

/// From this length on, bytes are saved rather than rounds.
inline constexpr std::size_t kLong = 32 * 1024;
/// Pieces of a pipeline are not shorter.
inline constexpr std::size_t kPieceMin = 32 * 1024;

/// Up to this many nodes meet at one of them, if the operation is at most kShort long: one port passes the bytes of all.
inline constexpr std::size_t kFewNodes = 8;
inline constexpr std::size_t kShort = 256;

/// A broadcast goes by multicast to at least this many nodes, from this length on...
inline constexpr std::size_t kMulticastNodes = 3;
inline constexpr std::size_t kMulticastMin = 4 * 1024;
/// ...and to at least this many at any length, in a team that broadcasts often: opening a group takes longer than a few short
/// broadcasts. In a barrier or a short allreduce a multicast would not pay: the second message there acknowledges the first.
inline constexpr std::size_t kMulticastNodesShort = 4;
/// Its pieces are not shorter.
inline constexpr std::size_t kMulticastPiece = 64 * 1024;
/// The sums of an allreduce go by multicast from this length on: the port of each node passes them once in each direction. In a
/// ring it passes them nearly twice.
inline constexpr std::size_t kMulticastSums = 32 * 1024;

/// True if the operation uses multicast.
bool spreads(const TeamLayout& layout, const Arguments& arguments);

/// The schedule of layout.self().
Schedule compose(const TeamLayout& layout, const Arguments& arguments);

}  // namespace cluster::collective
