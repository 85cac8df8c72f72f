#include "multipath/path_validator.h"

#include <algorithm>

namespace cluster::multipath {

PathValidator::Event PathValidator::on_acked(Time now, Time sent_at) {
  unanswered_ = 0;
  if (validated() || sent_at < failed_at_) return Event::none;
  return validate(now);
}

PathValidator::Event PathValidator::on_response(Time now, Time asked) {
  if (validated()) {
    if (asked >= unanswered_since_) unanswered_ = 0;
    return Event::none;
  }
  return asked < failed_at_ ? Event::none : validate(now);
}

bool PathValidator::on_unanswered(Time now) {
  if (!validated()) return false;
  if (unanswered_ == 0) unanswered_since_ = now;
  if (++unanswered_ < rules_.unanswered_max) return false;
  fail(now);
  return true;
}

void PathValidator::fail(Time now) {
  if (!validated()) return;
  validated_ = false;
  challenged_since_ = false;
  unanswered_ = 0;
  failed_at_ = challenge_at_ = now;
  if (now - validated_at_ >= rules_.trusted_after) {
    challenges_ = 0;
  } else {
    challenge_at_ += interval();
  }
}

void PathValidator::announce(Time now) {
  validated_ = false;
  announcing_ = challenged_since_ = true;
  challenges_ = unanswered_ = 0;
  failed_at_ = challenge_at_ = now;
}

void PathValidator::on_spurious_loss() {
  if (proven_ && !challenged_since_) validated_ = true;
}

PathValidator::Event PathValidator::on_challenge_sent(Time now) {
  challenged_since_ = true;
  challenge_at_ = now + interval();
  if (++challenges_ <= kChallengesBeforeWarning || warned_ || announcing_) return Event::none;
  warned_ = true;
  return Event::unanswered;
}

Duration PathValidator::interval() const {
  constexpr unsigned kDoublingsMax = 9;  // enough to exceed kChallengeIntervalMax
  return std::min<Duration>(kChallengeIntervalMin * (1 << std::min(challenges_, kDoublingsMax)),
                            kChallengeIntervalMax);
}

PathValidator::Event PathValidator::validate(Time now) {
  const bool worth_a_line = warned_ || !proven_;
  validated_ = proven_ = true;
  warned_ = announcing_ = false;
  validated_at_ = now;
  return worth_a_line ? Event::works : Event::none;
}

}  // namespace cluster::multipath
