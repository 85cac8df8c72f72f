// Carries the ICMP errors of one port from the error queues of its sockets to the engine.
//
// An error queue shares the socket's receive buffer, and keeps the socket readable. So a host that forges
// errors takes the space of frames, and wakes processes that sleep. Engine and responder therefore empty the
// queues as soon as a call on a socket reports an error; the errors wait here. If more than kPerInterval
// errors come in kInterval, which no real network needs, this object asks the kernel to keep none for kShut.
// The kernel then drops errors before they reach a queue. True errors come again, one a second.
//
// A forger can choose to which socket of the port the kernel hands an error, so one error is taken from each
// socket in turn.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <span>

#include "base/units.h"
#include "link/link.h"

namespace cluster::os {

/// Counts errors, and says when there are too many.
class PathErrorGate {
 public:
  static constexpr int kPerInterval = 64;
  static constexpr Duration kInterval = std::chrono::milliseconds(5);
  static constexpr Duration kShut = std::chrono::milliseconds(100);

  /// Counts an error. Returns false if it is one too many: the gate is shut from now on.
  bool admit(Time now);
  bool shut() const { return shut_; }
  /// Returns true if the gate was shut for long enough, and is now open again.
  bool reopen(Time now);

 private:
  Time since_{};
  int count_ = 0;
  bool shut_ = false;
};

/// Any thread may call.
class PathErrorQueue {
 public:
  explicit PathErrorQueue(SocketAddress::Family family) : family_(family) {}

  /// Adds a socket of the port. It must stay open until remove().
  void add(int socket);
  void remove(int socket);
  /// Empties the error queues of the sockets.
  void drain(Time now);
  /// Takes the errors that have waited longest, and returns their number.
  std::size_t take(std::span<link::PathError> errors);

 private:
  static constexpr std::size_t kSocketsMax = 3;
  static constexpr std::size_t kKept = 64;  ///< the engine looks every 5 ms: more errors are a flood

  bool take_from(int socket, Time now);
  void wish_for_errors(bool wanted);

  const SocketAddress::Family family_;
  std::mutex mutex_;
  PathErrorGate gate_;
  std::array<int, kSocketsMax> sockets_{};
  std::size_t count_ = 0;
  std::array<link::PathError, kKept> kept_;  ///< a ring: a new error replaces the oldest
  std::size_t first_ = 0;
  std::size_t waiting_ = 0;
};

}  // namespace cluster::os
