// CLUSTER_COLL selects the operations and lengths that the library takes over. All ranks must have the same
// value. They compare it when they create a team (communicator.h).
//
//   CLUSTER_COLL=off                        the library takes over nothing
//   CLUSTER_COLL=on                         it takes over all calls that it can, even where MPI is faster
//   CLUSTER_COLL=bcast=64K-,barrier=off     FROM-TO: bytes of one call, with K or M; FROM or TO is optional
//   CLUSTER_COLL=report                     each rank prints in MPI_Finalize how many calls were taken over
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace coll {

enum class Call { barrier, bcast, allreduce, allgather, reduce };
inline constexpr std::size_t kCalls = 5;
/// Returns the name that the call has in CLUSTER_COLL, for example "bcast".
const char* name_of(Call call);

class Settings {
 public:
  /// Returns the settings of this process, read once from the environment.
  static const Settings& get();

  explicit Settings(const char* text);

  bool report() const { return report_; }
  bool takes(Call call, std::size_t bytes) const {
    const Range& range = ranges_[static_cast<std::size_t>(call)];
    return bytes >= range.from && bytes <= range.to;
  }
  /// Returns a message about the error in the value of CLUSTER_COLL, or an empty string if the value is
  /// valid.
  const std::string& error() const { return error_; }
  /// Returns a hash of the settings, with which ranks compare them. `report` does not affect the hash.
  std::uint64_t fingerprint() const;

 private:
  struct Range {
    std::size_t from;
    std::size_t to;
  };
  bool read(const std::string& word);

  std::array<Range, kCalls> ranges_;
  bool report_ = false;
  std::string error_;
};

}  // namespace coll
