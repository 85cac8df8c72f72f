// CLUSTER_COLL: for which operations, and for how many bytes, the library acts. The same on all ranks: they compare
// what they have before they begin (communicator.h).
//
//   CLUSTER_COLL=off                              nothing is taken over
//   CLUSTER_COLL=on                               everything that can be, whatever pays
//   CLUSTER_COLL=bcast=64K-,barrier=off           bytes from-to of one call; K and M; either end may be missing
//   CLUSTER_COLL=report                           at the end each rank prints how many calls were taken over
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace coll {

enum class Call { barrier, bcast, allreduce, allgather, reduce };
inline constexpr std::size_t kCalls = 5;
/// As in the setting: "bcast".
const char* name_of(Call call);

class Settings {
 public:
  /// Read once, from the environment.
  static const Settings& get();

  explicit Settings(const char* text);

  bool report() const { return report_; }
  bool takes(Call call, std::size_t bytes) const {
    const Range& range = ranges_[static_cast<std::size_t>(call)];
    return bytes >= range.from && bytes <= range.to;
  }
  /// What is wrong with the text; empty if nothing is.
  const std::string& error() const { return error_; }
  /// Equal for equal settings.
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
