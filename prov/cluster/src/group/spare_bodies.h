// Memory for the bodies that the streams of a group keep until they are delivered. Of a long message nearly all are as long as
// frames permit, and most are delivered in the turn that brought them: the memory of some is kept for the next ones, so that the
// allocator is not asked, nor pages are given back and fetched again, for every frame.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace cluster::group {

class SpareBodies {
 public:
  using Body = std::unique_ptr<std::byte[]>;
  static constexpr std::size_t kSpareMax = 32;  ///< what a turn mostly brings

  explicit SpareBodies(std::size_t body_max) : body_max_(body_max) {}

  /// Memory for a body of that size.
  Body take(std::size_t size) {
    if (!pooled(size)) return std::make_unique_for_overwrite<std::byte[]>(size);
    if (spare_.empty()) {
      spare_.reserve(kSpareMax);  // to give memory back never needs any
      return std::make_unique_for_overwrite<std::byte[]>(body_max_);
    }
    Body body = std::move(spare_.back());
    spare_.pop_back();
    return body;
  }
  /// The body is over; what is not kept is freed.
  void give(Body body, std::size_t size) {
    if (pooled(size) && spare_.size() < spare_.capacity()) spare_.push_back(std::move(body));
  }
  std::size_t spare() const { return spare_.size(); }

 private:
  /// Shorter ones would waste most of the memory; a sender whose frames are longer than this side's has others.
  bool pooled(std::size_t size) const { return size > body_max_ / 2 && size <= body_max_; }

  std::size_t body_max_;
  std::vector<Body> spare_;
};

}  // namespace cluster::group
