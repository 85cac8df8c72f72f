#include "call_counters.h"

namespace coll {

CallCounters& CallCounters::get() {
  static CallCounters counters;
  return counters;
}

std::string CallCounters::text() const {
  std::string text;
  for (std::size_t call = 0; call < kCalls; ++call) {
    if (call > 0) text += ", ";
    text += std::string(name_of(static_cast<Call>(call))) + " " +
            std::to_string(counters_[call].taken.load()) + " of " +
            std::to_string(counters_[call].made.load());
  }
  return text;
}

}  // namespace coll
