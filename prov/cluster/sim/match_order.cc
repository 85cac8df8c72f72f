#include "sim/match_order.h"

namespace cluster::sim {
namespace {

/// Returns true if `early` was sent first, but got the later of two receives that both accept it.
bool out_of_order(const MatchOrder::Match& early, const MatchOrder::Match& late) {
  return early.message < late.message && early.position > late.position && late.criteria.accepts(early.tag);
}

}  // namespace

bool MatchOrder::note(std::uint64_t lane, const Match& match, Match& other) {
  std::vector<Match>& matches = lanes_[lane];
  for (const Match& before : matches) {
    if (!out_of_order(before, match) && !out_of_order(match, before)) continue;
    other = before;
    return false;
  }
  matches.push_back(match);
  return true;
}

}  // namespace cluster::sim
