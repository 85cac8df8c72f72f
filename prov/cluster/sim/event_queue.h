// What happens next. Time stands still while something happens and then jumps to the next thing: a
// run of minutes without any frame costs nothing. Things due at one moment happen in the order
// they were planned.
//
// The digest condenses everything that happened: two runs of one seed are the same run if and only if
// their digests agree.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/seeded_random.h"

namespace cluster::sim {

class EventHandler {
 public:
  virtual ~EventHandler() = default;
  /// `note` is what the actor gave when it planned this.
  virtual void handle_event(std::uint64_t note) = 0;
};

class EventQueue {
 public:
  Time now() const { return now_; }
  /// Not before now.
  void plan(Time at, EventHandler& actor, std::uint64_t note);
  bool empty() const { return entries_.empty(); }
  /// kNever if nothing is planned.
  Time next() const { return entries_.empty() ? kNever : entries_.front().at; }
  /// Lets the next thing happen; there must be one.
  void step();
  std::uint64_t steps() const { return steps_; }

  void note(std::uint64_t value) { digest_ = mix64(digest_ ^ value); }
  std::uint64_t digest() const { return digest_; }

 private:
  struct Entry {
    Time at;
    std::uint64_t order;
    EventHandler* actor;
    std::uint64_t note;
    /// For a heap whose front is the earliest.
    bool operator<(const Entry& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  std::vector<Entry> entries_;
  Time now_{};
  std::uint64_t order_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t digest_ = 0;
};

}  // namespace cluster::sim
