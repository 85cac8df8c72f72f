// The queue of planned events. Simulated time stands still during an event, and then jumps to the next
// event. So minutes without any frame cost nothing. Events that are due at the same moment happen in the
// order in which they were planned.
//
// The digest is a hash of everything that happened. If the digests of two runs of one seed agree, nothing in
// these runs was different.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "sim/seeded_random.h"

namespace cluster::sim {

class EventHandler {
 public:
  virtual ~EventHandler() = default;
  /// `note`: the value that the actor passed to plan().
  virtual void handle_event(std::uint64_t note) = 0;
};

class EventQueue {
 public:
  Time now() const { return now_; }
  /// Plans an event. An event before now happens now.
  void plan(Time at, EventHandler& actor, std::uint64_t note);
  bool empty() const { return entries_.empty(); }
  /// Returns the time of the next event, or kNever if none is planned.
  Time next() const { return entries_.empty() ? kNever : entries_.front().at; }
  /// Executes the next event. There must be one.
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
    /// Orders a heap whose front is the earliest event.
    bool operator<(const Entry& other) const { return at != other.at ? at > other.at : order > other.order; }
  };

  std::vector<Entry> entries_;
  Time now_{};
  std::uint64_t order_ = 0;
  std::uint64_t steps_ = 0;
  std::uint64_t digest_ = 0;
};

}  // namespace cluster::sim
