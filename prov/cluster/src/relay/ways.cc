#include "relay/ways.h"

#include <algorithm>

namespace cluster::relay {

bool Ways::begin_round(Time now) {
  for (Way& way : ways_) {
    if (way.last().number != 0) way.missed = std::min(way.missed + 1, kMissedMax);
  }
  const bool changed = choose();
  const Duration retry = std::max(kRetry, 2 * ways_[used_].round_trip);
  next_round_ = now + (vain_rounds_ < kQuickRounds ? retry : std::max(retry, kRest));
  vain_rounds_ = std::min(vain_rounds_ + 1, kQuickRounds);
  return changed;
}

void Ways::asked(Time now, std::size_t way, std::uint64_t question) {
  Way& its = ways_[way];
  its.questions[its.next] = {question, now};
  its.next = (its.next + 1) % its.questions.size();
}

bool Ways::expects(std::size_t way, std::uint64_t question) const {
  return question != 0 && way < ways_.size() &&
         std::ranges::count(ways_[way].questions, question, &Question::number) != 0;
}

bool Ways::on_answer(Time now, std::size_t way, std::uint64_t question) {
  Way& its = ways_[way];
  const auto answered = std::ranges::find(its.questions, question, &Question::number);
  const Duration took = now - answered->at;
  answered->number = 0;
  its.round_trip = its.round_trip == Duration{} ? took : (3 * its.round_trip + took) / 4;
  its.missed = 0;
  vain_rounds_ = 0;
  const bool changed = choose();
  if (way == used_) next_round_ = now + (way == kDirect ? kCheckDirect : kCheckRelay);
  return changed;
}

/// If no way works, the way in use stays in use.
bool Ways::choose() {
  const std::size_t before = used_;
  if (works(kDirect)) {
    used_ = kDirect;
  } else if (const std::size_t best = best_relay(); best != kDirect) {
    const bool stays = used_ != kDirect && works(used_) &&
                       kOfParts * ways_[best].round_trip >= kMuchShorter * ways_[used_].round_trip;
    if (!stays) used_ = best;
  }
  return used_ != before;
}

/// Returns the way through the nearest relay, or kDirect if no relay works.
std::size_t Ways::best_relay() const {
  std::size_t best = kDirect;
  for (std::size_t i = 1; i < ways_.size(); ++i) {
    if (works(i) && (best == kDirect || ways_[i].round_trip < ways_[best].round_trip)) best = i;
  }
  return best;
}

}  // namespace cluster::relay
