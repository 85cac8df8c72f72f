#include "sim/quarantine.h"

#include <algorithm>

#include "sim/failure.h"

namespace cluster::sim {
namespace {

constexpr std::byte kPoison{0xEE};

}  // namespace

void Quarantine::take(Buffer buffer, std::size_t size) {
  if (buffer == nullptr) return;
  std::fill_n(buffer.get(), size, kPoison);
  kept_.push_back({std::move(buffer), size});
  if (kept_.size() <= kBuffersMax) return;
  check(kept_.front());
  kept_.pop_front();
}

void Quarantine::check() const {
  for (const Kept& kept : kept_) check(kept);
}

void Quarantine::check(const Kept& kept) {
  const ConstBytes bytes{kept.buffer.get(), kept.size};
  if (std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == kPoison; })) return;
  throw SafetyFailure("a buffer was written after the library had given it back");
}

}  // namespace cluster::sim
