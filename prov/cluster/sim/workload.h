// What applications do in a run: which hosts exchange messages, how large these are, how receives are posted.
// A plan is drawn once per run; every host follows it with its own random numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "sim/seeded_random.h"

namespace cluster::sim {

enum class Pattern : std::uint8_t {
  ping_pong,  ///< in pairs of hosts
  all_to_all,
  incast,   ///< all others send to host 0
  one_way,  ///< host 0 sends to host 1, and there is no other traffic
  scattered,
};

struct SizeMix {
  /// Weights of the classes below.
  std::uint32_t tiny = 30;    ///< 0, 1, 7, 8, 64...
  std::uint32_t inject = 10;  ///< around the largest size that can be injected
  std::uint32_t frame = 30;   ///< around the payload of one, two or three frames
  std::uint32_t eager = 10;   ///< around the eager threshold
  std::uint32_t pull = 2;     ///< around the size of one pull, and of two
  std::uint32_t huge = 0;     ///< one to four megabytes
  std::size_t fixed = 0;      ///< if not 0: every message is this long
};

/// The sizes that matter to the library under the settings of this run.
struct Thresholds {
  std::size_t frame_max = 1472;
  std::size_t eager_max = 64 * 1024;
};

std::size_t draw_size(const SizeMix& mix, const Thresholds& thresholds, SeededRandom& random);
std::size_t largest_size(const SizeMix& mix, const Thresholds& thresholds);
/// Returns the length of the longest datagram.
std::size_t datagram_max(const Thresholds& thresholds);
/// Remote accesses are at most so long, so that several of them fit into a region.
inline constexpr std::size_t kRemoteMax = 1200 * 1024;

struct AtomicMix {
  std::uint32_t share = 0;              ///< of all operations
  std::uint32_t mixed_words = 200'000;  ///< share of the atomic operations on words that take every kind
};

struct WorkloadPlan {
  std::string name;
  Pattern pattern = Pattern::scattered;
  std::uint32_t messages = 100;     ///< how many each host sends
  std::uint32_t in_flight = 8;      ///< how many sends of one host may be incomplete
  std::uint32_t receive_depth = 8;  ///< how many receives a host keeps posted
  Duration think{0};                ///< longest pause between sends
  Duration late{0};                 ///< longest pause before a used receive is replaced
  SizeMix sizes;
  std::size_t unexpected_max = 0;  ///< if not 0: so many messages may wait for a receive at every host
  bool one_frame = false;          ///< every message is sent eagerly, in one frame

  /// Shares, in parts in a million: of the messages, of the receives, or of the turns of an application.
  std::uint32_t tagged = 700'000;
  std::uint32_t with_data = 300'000;
  std::uint32_t injected = 300'000;
  std::uint32_t unreported = 50'000;
  std::uint32_t more = 100'000;
  std::uint32_t scattered_buffers = 200'000;
  std::uint32_t buffer_free = 100'000;
  std::uint32_t delivered = 200'000;
  std::uint32_t to_itself = 10'000;
  std::uint32_t wildcard = 500'000;   ///< receives from any source
  std::uint32_t exact = 100'000;      ///< receives for the tag of one message to come
  std::uint32_t classed = 100'000;    ///< receives for a class of tags
  std::uint32_t truncating = 20'000;  ///< receives that may be too short
  std::uint32_t cancel = 0;
  std::uint32_t peek = 0;

  /// Remote memory. These are shares of the operations; `closing` is a share of the turns.
  std::uint32_t remote = 0;          ///< remote reads and writes in place of messages
  std::uint32_t reads = 300'000;     ///< remote operations that read
  std::uint32_t forbidden = 50'000;  ///< operations that are not allowed
  std::uint32_t fenced = 100'000;
  std::uint32_t read_back = 200'000;  ///< writes that are read back, behind a fence
  std::uint32_t closing = 0;          ///< turns in which a region is closed and another one opened

  AtomicMix atomics;
  std::size_t multi_receives = 0;  ///< buffers for many messages that a host keeps posted
  bool datagrams = false;          ///< all endpoints of the run are datagram endpoints
};

/// Returns the names that --workload knows, except "any".
std::vector<std::string_view> workload_names();
/// Returns the plan of this workload. If the name is "any" or empty, draws a workload. If the name is
/// unknown, the name in the plan is empty.
WorkloadPlan draw_workload(std::string_view name, SeededRandom& random);

}  // namespace cluster::sim
