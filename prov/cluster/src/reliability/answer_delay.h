// Whether answers (`done`) wait for something of the application to travel with. The peer's application waits for
// them, and an application that computes after it has seen a write polls no more: an answer that waited would
// then be late by as long as that takes. So answers wait only after kInTimeMin times in a row in which data
// followed them within kFollowsWithin; once without effect, and it takes kMissCost times more.
//
// It knows nothing of time but when answers last left alone; what is due is for the AckScheduler to say.
#pragma once

#include "base/units.h"

namespace cluster::reliability {

class AnswerDelay {
 public:
  /// Nothing is to be sent but answers. True if they wait; until when, the owed acknowledgement says.
  bool wait() { return waiting_ = in_time_ >= kInTimeMin; }
  /// Answers have left, and nothing else with them.
  void on_answers_alone(Time now) {
    if (waiting_ || followed_by_ != kNever) in_time_ = -kMissCost;
    waiting_ = false;
    followed_by_ = now + kFollowsWithin;
  }
  /// Something of the application has left.
  void on_data(Time now) {
    waiting_ = false;
    if (followed_by_ == kNever) return;
    if (now > followed_by_) {
      in_time_ = -kMissCost;
    } else if (in_time_ < kInTimeMin) {
      ++in_time_;
    }
    followed_by_ = kNever;
  }

 private:
  static constexpr int kInTimeMin = 4;
  static constexpr int kMissCost = 16;
  static constexpr Duration kFollowsWithin = 25us;  ///< more than a reply takes: the lone frame delays it

  int in_time_ = 0;            ///< how often in a row, at most kInTimeMin; below zero after a miss
  bool waiting_ = false;       ///< answers wait now
  Time followed_by_ = kNever;  ///< data sent by then could have taken along the answers that left alone
};

}  // namespace cluster::reliability
