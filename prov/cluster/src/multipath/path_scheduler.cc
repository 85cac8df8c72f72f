#include "multipath/path_scheduler.h"

namespace cluster::multipath {
namespace {

/// A rail is passed over for a better one that is held back only if it delivers this many times later.
constexpr int kWaitFactor = 2;

}  // namespace

std::optional<std::size_t> earliest_delivery(std::span<const DeliveryEstimate> rails) {
  std::optional<std::size_t> best;
  std::optional<std::size_t> allowed;
  std::optional<std::size_t> unknown;
  for (std::size_t i = 0; i < rails.size(); ++i) {
    const DeliveryEstimate& rail = rails[i];
    if (!rail.up) continue;
    if (!rail.known) {
      if (rail.allowance != 0 && rail.in_flight == 0) return i;
      if (rail.allowance != 0) unknown = i;
      continue;
    }
    const auto before = [&](const std::optional<std::size_t>& other) {
      return !other || rail.delivery() < rails[*other].delivery();
    };
    if (before(best)) best = i;
    if (rail.allowance != 0 && before(allowed)) allowed = i;
  }
  if (!best) return unknown;
  if (!allowed || rails[*allowed].delivery() <= kWaitFactor * rails[*best].delivery()) return allowed;
  return std::nullopt;
}

}  // namespace cluster::multipath
