// How long nothing has been heard of a peer that owes an answer, neither of its engine nor of its keep-alive
// responder. Where its kernel says meanwhile that its process exists, the silence has no end by itself, and each is
// reported to the user: once when it has lasted for kWorthALine, and once when it is over.
//
// It decides nothing (liveness.h does), and costs the path of frames two stores.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/units.h"

namespace cluster::reliability {

class Silence {
 public:
  void on_heard(Time now) {
    heard_at_ = now;
    lasted_ = Duration{};
    vouched_ = false;
  }
  /// What was asked then has been answered, and no more is known.
  void on_answer(Time asked, Duration since) {
    heard_at_ = std::max(heard_at_, asked);
    if (since < lasted_) vouched_ = false;
    lasted_ = std::min(lasted_, since);
  }
  /// An answer is owed from now on.
  void begin() {
    lasted_ = Duration{};
    vouched_ = false;
  }
  /// Time that counts (see Liveness).
  void count(Duration more) { lasted_ += more; }
  /// Whether the peer's kernel says that its process exists.
  void on_kernel(bool exists) { vouched_ = exists; }

  /// The last sign of life over any path; Time{}: none yet.
  Time heard_at() const { return heard_at_; }
  Duration lasted() const { return lasted_; }
  bool vouched() const { return vouched_; }

  enum class News : std::uint8_t { none, lasts, over };
  /// What there is to report; each is reported once.
  News take_news() {
    if (!reported_ && vouched_ && lasted_ >= kWorthALine) {
      reported_ = true;
      return News::lasts;
    }
    if (!over()) return News::none;
    reported_ = false;
    return News::over;
  }
  /// The end of one that was reported is to be reported.
  bool over() const { return reported_ && lasted_ < kWorthALine; }

  static constexpr Duration kWorthALine = 10s;

 private:
  Time heard_at_{};
  Duration lasted_{};
  bool vouched_ = false;
  bool reported_ = false;
};

}  // namespace cluster::reliability
