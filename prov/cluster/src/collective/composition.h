// Which exchanges an operation is made of, by its length and by where the members are. Short operations take few
// rounds, long ones move few bytes: trees and doubling for the former, pipelines and rings for the latter.
// Inside a node the members combine first, and one of them speaks for the node.
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
  bool multicast = false;  ///< nodes can be reached by it; the same at all members
  bool often = false;      ///< the team broadcasts often; likewise
};

/// From this length on, bytes are saved rather than rounds.
inline constexpr std::size_t kLong = 32 * 1024;
/// Pieces of a pipeline are not shorter.
inline constexpr std::size_t kPieceMin = 32 * 1024;

/// So few nodes meet at one, for what is as short as this: its port passes the bytes of all.
inline constexpr std::size_t kFewNodes = 8;
inline constexpr std::size_t kShort = 256;

/// A broadcast goes by multicast to so many nodes at least, from this length on...
inline constexpr std::size_t kMulticastNodes = 3;
inline constexpr std::size_t kMulticastMin = 4 * 1024;
/// ...and of any length to so many, in a team that broadcasts often: to open a group takes longer than a few short ones. A
/// multicast in place of the second message of a barrier or an allreduce does not pay: that message acknowledges the first.
inline constexpr std::size_t kMulticastNodesShort = 4;
/// Its pieces are not shorter.
inline constexpr std::size_t kMulticastPiece = 64 * 1024;
/// The sums of an allreduce go by multicast from this length on: the port of each node passes them once in each direction, in
/// a ring nearly twice.
inline constexpr std::size_t kMulticastSums = 32 * 1024;

/// True if that is how it goes.
bool spreads(const TeamLayout& layout, const Arguments& arguments);

/// The part of layout.self() in it.
Schedule compose(const TeamLayout& layout, const Arguments& arguments);

}  // namespace cluster::collective
