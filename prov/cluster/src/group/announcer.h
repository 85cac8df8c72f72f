// Says by multicast that a member is here, for members that no roster names: at once and some times more, then seldom, and the
// more seldom the larger the group is. A member that misses all of the first ones is found by a later one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"
#include "link/link.h"

namespace cluster::group {

class Announcer {
 public:
  explicit Announcer(std::uint64_t key) : key_(key) {}

  /// Announces if that is due. `members`: so many are known.
  void run(Time now, link::Link& link, const link::Path& group, std::size_t members);
  Time deadline() const { return next_; }
  /// Those that were there have had their time to answer.
  bool settled() const;

 private:
  std::uint64_t key_;
  Time next_{};
  unsigned sent_ = 0;
};

}  // namespace cluster::group
